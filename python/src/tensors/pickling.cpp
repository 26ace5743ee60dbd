// Pickles of tensors: the bytes of their elements, which protocol 5 leaves outside where it is
// asked to. Reading one runs no code but what is here, and trusts nothing.
#include "base/error.h"
#include "core.h"
#include "eval/eval.h"
#include "ir/dtype.h"
#include "ir/interned.h"
#include "ir/watch.h"
#include "mesh/division.h"
#include "tenon/backward.h"
#include "tenon/mesh.h"

namespace tn::python {
namespace {

/// The elements as uint8, in the same memory.
Tensor bytes_of(const Tensor& x) {
  RecordScope scope;
  Bound bound = bound_of(slot_of(x));
  return make_data(std::move(bound.buffer), bound.offset, intern(DType::u8, Shape{x.bytes()}));
}

/// What the user said of gradients: None is nothing.
nb::object wish_of(const Tensor& x) {
  if (requires_grad(x)) return nb::bool_(true);
  return watch_bits(*x.node()) & kRefused ? nb::object(nb::bool_(false)) : nb::none();
}

nb::object reduce(nb::handle self, int protocol) {
  Tensor x = self_tensor(self.ptr());
  check_exportable(x);
  Tensor here = x.to(Device());
  evaluate(here);
  nb::object bytes = wrapped(bytes_of(here));
  bytes = checked(protocol >= 5 ? PyPickleBuffer_FromObject(bytes.ptr())
                                : PyBytes_FromObject(bytes.ptr()));
  nb::object read = nb::module_::import_("tenon.copying").attr("tensor");
  nb::object type = nb::borrow(self.type());
  bool plain = type.ptr() == reinterpret_cast<PyObject*>(tensor_type);
  std::string_view name = name_of(x.dtype());
  nb::object device = nb::none();
  if (is_mesh(x.device()))
    device = nb::str(mesh::placement(x).c_str());
  else if (!x.device().is_host())
    device = nb::str(to_text(x.device()).c_str());
  nb::tuple arguments = nb::make_tuple(nb::str(name.data(), name.size()), shape_tuple(x.shape()),
                                       bytes, wish_of(x), plain ? nb::none() : type, device);
  nb::object attributes = plain ? nb::none() : nb::getattr(self, "__dict__", nb::none());
  return nb::make_tuple(read, arguments, attributes);
}

struct Layout {
  Shape shape;
  size_t bytes;
};

/// The sizes of a pickle, of which none is too large to count.
Layout read_layout(DType type, const nb::tuple& sizes) {
  std::vector<int64_t> extents;
  int64_t bytes = size_of(type);
  bool fits = sizes.size() <= kMaxRank, empty = false;
  for (nb::handle size : sizes) {
    int overflow = 0;
    int64_t extent =
        PyLong_Check(size.ptr()) ? PyLong_AsLongLongAndOverflow(size.ptr(), &overflow) : -1;
    fits = fits && !overflow && extent >= 0;
    if (!fits || extent == 0)
      empty = true;
    else
      fits = !__builtin_mul_overflow(bytes, extent, &bytes);
    extents.push_back(extent);
  }
  if (!fits) fail("pickle: invalid shape: {}", nb::repr(sizes).c_str());
  return {Shape(extents), empty ? 0 : static_cast<size_t>(bytes)};
}

nb::object read_pickle(const nb::str& dtype, const nb::tuple& sizes, nb::handle bytes,
                       nb::handle wish, nb::handle type, nb::handle device) {
  DType element;
  if (!try_read_dtype(dtype.ptr(), element))
    fail(Fault::type, "pickle: not an element type: {}", nb::repr(dtype).c_str());
  Layout layout = read_layout(element, sizes);
  Tensor x = tensor_from_bytes(bytes.ptr(), element, layout.shape, layout.bytes);
  std::string place = nb::isinstance<nb::str>(device) ? nb::str(device).c_str() : "";
  if (place.starts_with("mesh("))
    x = mesh::placed(x, place);
  else if (!device.is_none())
    x = x.to(read_device(device.ptr()));
  if (!wish.is_none()) require_grad(x, wish.ptr() == Py_True);
  if (type.is_none()) return wrapped(std::move(x));
  if (!PyType_Check(type.ptr()) ||
      !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type.ptr()), tensor_type))
    fail(Fault::type, "pickle: not a class of tensors: {}", nb::repr(type).c_str());
  nb::object made = nb::inst_alloc(type);
  new (nb::inst_ptr<Tensor>(made)) Tensor(std::move(x));
  nb::inst_mark_ready(made);
  return made;
}

}  // namespace

void add_pickling(nb::module_& m, nb::class_<Tensor>& type) {
  type.def("__reduce_ex__", reduce, users_call, nb::arg("protocol"));
  m.def("_read_pickle", read_pickle, users_call, nb::arg("dtype"), nb::arg("shape"),
        nb::arg("data"), nb::arg("requires_grad").none(), nb::arg("type").none(),
        nb::arg("device").none(), "The tensor of a pickle, from the bytes of its elements.");
}

}  // namespace tn::python
