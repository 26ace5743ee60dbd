// Python functions and lists of tensors as those of C++.
#include "base/error.h"
#include "calls/list_function.h"
#include "core.h"

namespace tn::python {

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
    if (t.defined())
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

}  // namespace tn::python
