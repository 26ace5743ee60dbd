// The Tensor class: construction, properties, values as Python objects.
#include <nanobind/stl/string.h>

#include "base/error.h"
#include "core.h"
#include "ir/number.h"
#include "ir/trace.h"
#include "tensors/dims.h"
#include "tensors/given_away.h"

namespace tn::python {

PyTypeObject* tensor_type;

/// Of an object that gave it away, to a call that another thread may be making.
[[gnu::noinline]] static void wait_for_tensor(PyObject* object, const Tensor* tensor) {
  nb::object held = nb::borrow(object);
  while (!tensor->defined() && wait_for_call(tensor)) {
  }
  bool only_here = Py_REFCNT(object) == 1;  // what held it has another
  if (tensor->defined() && !only_here) return;
  std::string_view call = only_here           ? "on another thread, which replaced the tensor"
                          : holder_of(tensor) ? "that is still running"
                                              : "that has ended or was interrupted";
  fail(Hint{"read the new value from the result or from outputs=, or pass a copy"},
       "Tensor: its buffer was donated to a compiled call (donate_argnums= or outputs=) {}", call);
}

Tensor* tensor_in(PyObject* object) {
  if (Py_TYPE(object) != tensor_type && !PyObject_TypeCheck(object, tensor_type)) return nullptr;
  Tensor* tensor = nb::inst_ready(object) ? nb::inst_ptr<Tensor>(object) : nullptr;
  if (tensor && !tensor->defined()) wait_for_tensor(object, tensor);
  if (!tensor)
    fail(Fault::type, Hint{"a subclass calls super().__init__(data)"},
         "Tensor: an object whose __init__ did not run: {}", type_name(object));
  return tensor;
}

Tensor& self_tensor(PyObject* self) {
  Tensor* tensor = tensor_in(self);
  if (!tensor) fail(Fault::type, "Tensor: not a tensor: {}", type_name(self));
  return *tensor;
}

PyObject* wrap(Tensor&& tensor) {
  PyTypeObject* type = is_given_number(tensor) ? number_type : tensor_type;
  nb::object made = nb::inst_alloc(reinterpret_cast<PyObject*>(type));
  new (nb::inst_ptr<Tensor>(made)) Tensor(std::move(tensor));
  nb::inst_mark_ready(made);
  return made.release().ptr();
}

void evaluate(const Tensor& tensor) {
  if (tensor.is_evaluated()) return;
  // Another thread may rebind the handle meanwhile: eval gives Python's lock to others.
  Tensor held = tensor;  // NOLINT(performance-unnecessary-copy-initialization): as said
  held.eval();
  release_dropped();
}

void evaluate(const Tensors& tensors) {
  tn::eval(tensors);
  release_dropped();
}

void check_exportable(const Tensor& tensor) {
  if (!running_tape(tensor.node()->taped)) return;
  const Trace* trace = Trace::current();
  while (trace && trace->values != Trace::Values::known) trace = trace->outer;
  fail(Fault::type,
       Hint{"compute with tn's functions, or export a constant: tn.stop_gradient(x), x.detach()"},
       "{}: cannot export a tensor that is being differentiated, its derivative would be lost: {}",
       trace ? trace->by : "grad", *type_of(tensor));
}

namespace {

nb::object nested_list(const Tensor& t, int axis, const char*& at) {
  if (axis == t.rank()) {
    nb::object made = element_object(t.dtype(), at);
    at += size_of(t.dtype());
    return made;
  }
  int64_t count = t.dim(axis);
  nb::object list = nb::steal(PyList_New(count));
  for (int64_t i = 0; i < count; ++i)
    PyList_SET_ITEM(list.ptr(), i, nested_list(t, axis + 1, at).release().ptr());
  return list;
}

nb::object to_list(nb::handle self) {
  UserCall call;
  Tensor t = self_tensor(self).to(Device());
  evaluate(t);
  const char* at = static_cast<const char*>(t.data());
  return nested_list(t, 0, at);
}

nb::object item(nb::handle self, nb::args index) {
  UserCall call;
  Tensor t = self_tensor(self);
  if (index.size() > 0)
    fail(Fault::type, Hint{"x[i].item(), or x.flatten()[i].item()"}, "item: takes no arguments");
  if (t.size() != 1) fail("item: needs a tensor of one element: {}", to_text(*type_of(t)));
  t = t.to(Device());
  evaluate(t);
  return element_object(t.dtype(), t.data());
}

/// NumPy has no bfloat16 and float8: they are exported as float32, which holds all their values.
nb::object to_array(nb::handle self, nb::handle dtype, nb::handle wanted) {
  UserCall call;
  Copy copy = read_copy(wanted, Copy::if_needed);
  nb::module_ numpy = nb::module_::import_("numpy");
  bool exported = buffer_format(self_tensor(self).dtype()) != nullptr;
  if (!self_tensor(self).device().is_host()) check_may_copy(copy);
  nb::object source = nb::borrow(self);
  if (!exported) {
    if (copy == Copy::never)
      fail("__array__: {} cannot be exported without a copy", name_of(self_tensor(self).dtype()));
    source = self.attr("astype")(dtype_object(DType::f32));
  }
  nb::object view = checked(PyMemoryView_FromObject(source.ptr()));
  nb::object array = numpy.attr("asarray")(view);
  if (!dtype.is_none()) {
    nb::object same = array.attr("dtype").attr("__eq__")(numpy.attr("dtype")(dtype));
    bool converts = !nb::cast<bool>(same);
    if (converts && copy == Copy::never)
      fail("__array__: {} cannot become {} without a copy", name_of(self_tensor(self).dtype()),
           nb::repr(dtype).c_str());
    if (converts) return array.attr("astype")(dtype);
  }
  return copy == Copy::always ? array.attr("copy")() : array;
}

nb::object complex_of(nb::handle self) {
  UserCall call;
  Tensor t = self_tensor(self);
  if (t.size() != 1)
    fail(Fault::type, "complex: needs a tensor of one element: {}", to_text(*type_of(t)));
  evaluate(t);
  Scalar s = item_of(t);
  return nb::steal(PyComplex_FromDoubles(s.real, s.imag));
}

void construct(Tensor* self, nb::handle data, nb::handle dtype) {
  UserCall call;
  Maybe<DType> type;
  if (!dtype.is_none()) type = read_dtype(dtype.ptr());
  new (self) Tensor(tensor_from(data.ptr(), type, Copy::always));
}

std::string text(nb::handle self) {
  UserCall call;
  Tensor t = self_tensor(self);
  evaluate(t);
  return t.to_string();
}

nb::object format_element(nb::handle self, nb::handle form) {
  UserCall call;
  bool plain = nb::len(form) == 0;
  if (plain) return nb::str(text(self).c_str());
  if (self_tensor(self).rank() != 0)
    fail(Fault::type, "format: {} needs a tensor of rank 0: {}", nb::repr(form).c_str(),
         to_text(*type_of(self_tensor(self))));
  return nb::steal(PyObject_Format(item(self, {}).ptr(), form.ptr()));
}

nb::object transposed(nb::handle self) {
  UserCall call;
  const Tensor& t = self_tensor(self);
  if (t.rank() == 0) return nb::borrow(self);
  return wrapped(call_op("permute_dims", {t}));
}

template <class F>
auto unary_property(F op) {
  return [op](nb::handle self) {
    UserCall call;
    return wrapped(call_op(op, {self_tensor(self)}));
  };
}

void add_properties(nb::class_<Tensor>& type) {
  type.def_prop_ro(
          "shape", [](nb::handle s) { return shape_tuple(self_tensor(s).shape()); },
          "The extents, outermost first.")
      .def_prop_ro(
          "dtype", [](nb::handle s) { return dtype_object(self_tensor(s).dtype()); },
          "The element type.")
      .def_prop_ro(
          "device", [](nb::handle s) { return device_object(self_tensor(s).device()); },
          "The device of the elements.")
      .def_prop_ro(
          "ndim", [](nb::handle s) { return self_tensor(s).rank(); }, "Number of axes.")
      .def_prop_ro(
          "rank", [](nb::handle s) { return self_tensor(s).rank(); }, "Number of axes.")
      .def_prop_ro(
          "size", [](nb::handle s) { return size_object(self_tensor(s).shape().elements()); },
          "Number of elements.")
      .def_prop_ro(
          "itemsize", [](nb::handle s) { return size_of(self_tensor(s).dtype()); },
          "Bytes of one element.")
      .def_prop_ro(
          "nbytes", [](nb::handle s) { return self_tensor(s).bytes(); }, "Bytes of all elements.")
      .def_prop_ro("T", transposed, "The axes in reverse order.")
      .def_prop_ro("mT", unary_property("matrix_transpose"), "The last two axes exchanged.")
      .def_prop_ro("real", unary_property("real"), "The real part.")
      .def_prop_ro("imag", unary_property("imag"), "The imaginary part.");
}

void add_values(nb::class_<Tensor>& type) {
  type.def("item", item, "The one element as a Python number.")
      .def("tolist", to_list, "The elements as nested lists of Python numbers.")
      .def(
          "numpy", [](nb::handle s) { return to_array(s, nb::none(), nb::none()); },
          "The elements as a NumPy array: shared and read-only where NumPy has the type,\n"
          "float32 for bfloat16 and float8. An error for a tensor that is being differentiated:\n"
          "export `x.detach()`.")
      .def("__array__", to_array, nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none())
      .def("__complex__", complex_of)
      .def("__repr__", text)
      .def("__str__", text)
      .def("__format__", format_element)
      .def(
          "eval",
          [](nb::handle s) {
            UserCall call;
            evaluate(self_tensor(s));
            return nb::borrow(s);
          },
          "Computes the value if it is pending, and returns the tensor.")
      .def(
          "graph", [](nb::handle s) { return self_tensor(s).graph(); },
          "The pending ops behind this tensor, as text.")
      .def(
          "to_device",
          [](nb::handle s, nb::handle device, nb::handle) {
            UserCall call;
            Device wanted = read_device(device.ptr());
            Tensor x = self_tensor(s);
            return x.device() == wanted ? nb::borrow(s) : wrapped(x.to(wanted));
          },
          nb::arg("device").none(), nb::kw_only(), nb::arg("stream") = nb::none());
}

}  // namespace

void find_operators();

void bind_tensor(nb::module_& m) {
  find_operators();
  nb::class_<Tensor> type(
      m, "Tensor", nb::type_slots(tensor_slots), nb::pooled(256), nb::is_weak_referenceable(),
      "A lazy array: ops record, values are computed when needed. Elements are never\n"
      "overwritten: `x[i] = v` gives the object another value, which other names\n"
      "of it show, and nothing that was made from it before.");
  tensor_type = reinterpret_cast<PyTypeObject*>(type.ptr());
  make_number_type();
  type.def("__init__", construct, nb::arg("data").none(), nb::arg("dtype") = nb::none());
  add_properties(type);
  add_values(type);
  add_gradients(type);
  add_pickling(m, type);
  add_export(type);
  type.attr("__array_priority__") = 1000;
}

}  // namespace tn::python
