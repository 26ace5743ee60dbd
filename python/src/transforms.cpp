// Transforms on flat lists of tensors. The trees of arguments and results are python/tenon's.
#include "tenon/transforms.h"

#include "base/error.h"
#include "core.h"
#include "ir/node.h"
#include "python_function.h"

namespace tn::python {

namespace {

std::vector<Maybe<int>> axes_of(nb::handle list) {
  std::vector<Maybe<int>> axes;
  for (nb::handle item : list)
    axes.push_back(item.is_none() ? Maybe<int>() : Maybe<int>(read_axis(item)));
  return axes;
}

nb::tuple pair_of(const Derivatives& d) {
  return nb::make_tuple(tensor_list(d.values), tensor_list(d.derivatives));
}

}  // namespace

std::shared_ptr<PyObject> keep(nb::object object) {
  return {object.release().ptr(), [](PyObject* o) { release_object(o); }};
}

int read_axis(nb::handle axis) {
  int value = 0;
  if (!nb::try_cast<int>(axis, value))
    fail(Fault::index, "vmap: no axis {}", nb::repr(axis).c_str());
  return value;
}

nb::list tensor_list(const Tensors& tensors) {
  nb::list made;
  for (const Tensor& t : tensors) {
    if (t)
      made.append(wrapped(Tensor(t)));
    else
      made.append(nb::none());
  }
  return made;
}

Tensors read_tensors(nb::handle list, std::string_view what) {
  Tensors made;
  for (nb::handle item : list)
    made.push_back(item.is_none() ? Tensor() : read_tensor(item.ptr(), what));
  return made;
}

Function python_function(nb::object f, std::string_view what) {
  return [f = keep(std::move(f)), what = std::string(what)](const Tensors& args) {
    OwnPlaces own;
    return read_tensors(nb::borrow(f.get())(tensor_list(args)), what);
  };
}

void bind_transforms(nb::module_& m) {
  m.def("_is_traced", [](nb::handle x) { return self_tensor(x.ptr()).node()->traced; });
  m.def("_vjp", [](nb::object f, nb::handle primals, nb::handle cotangents) {
    UserCall call;
    return pair_of(tn::vjp(python_function(std::move(f), "vjp"), read_tensors(primals, "vjp"),
                           read_tensors(cotangents, "vjp")));
  });
  m.def("_jvp", [](nb::object f, nb::handle primals, nb::handle tangents) {
    UserCall call;
    return pair_of(tn::jvp(python_function(std::move(f), "jvp"), read_tensors(primals, "jvp"),
                           read_tensors(tangents, "jvp")));
  });
  m.def(
      "_vmap",
      [](nb::object f, nb::handle args, nb::handle in_axes, nb::handle out_axes) {
        UserCall call;
        Function mapped =
            tn::vmap(python_function(std::move(f), "vmap"), axes_of(in_axes), axes_of(out_axes));
        return tensor_list(mapped(read_tensors(args, "vmap")));
      },
      nb::arg("f"), nb::arg("args"), nb::arg("in_axes"), nb::arg("out_axes") = nb::tuple());
}

}  // namespace tn::python
