// Python values as operands: numbers, tensors, and whatever a tensor can be made of.
#include <complex>
#include <cstring>

#include "base/error.h"
#include "core.h"
#include "ir/element.h"
#include "ir/node.h"
#include "tensors/dims.h"

namespace tn::python {
namespace {

bool is_floating_tensor(PyObject* object) {
  Tensor* t = object ? tensor_in(object) : nullptr;
  return t && kind_of(t->dtype()) >= Kind::floating;
}

bool read_integer(PyObject* object, Scalar& out, PyObject* beside) {
  int overflow = 0;
  long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (!overflow) {
    out = Scalar(static_cast<int64_t>(value));
    return true;
  }
  if (overflow > 0) {
    unsigned long long big = PyLong_AsUnsignedLongLong(object);
    if (!PyErr_Occurred()) {
      out = Scalar(static_cast<uint64_t>(big));
      return true;
    }
    PyErr_Clear();
  }
  if (is_floating_tensor(beside)) {
    double rounded = PyLong_AsDouble(object);
    bool fits = !PyErr_Occurred();
    if (!fits) PyErr_Clear();
    if (!fits) throw_python(out_of_range, "the integer does not fit a float");
    out = Scalar(rounded);
    return true;
  }
  throw_python(out_of_range, "the integer does not fit 64 bits");
}

}  // namespace

bool is_numpy(PyObject* object) { return std::strncmp(Py_TYPE(object)->tp_name, "numpy.", 6) == 0; }

bool read_number(PyObject* object, Scalar& out, PyObject* beside) {
  PyTypeObject* type = Py_TYPE(object);
  if (type == &PyFloat_Type) {
    out = Scalar(PyFloat_AS_DOUBLE(object));
    return true;
  }
  if (type == &PyBool_Type) {  // before int, which it also is
    out = Scalar(object == Py_True);
    return true;
  }
  if (type == &PyLong_Type) return read_integer(object, out, beside);
  if (type == &PyComplex_Type) {
    Py_complex z = PyComplex_AsCComplex(object);
    out = Scalar(std::complex<double>(z.real, z.imag));
    return true;
  }
  if (PyFloat_Check(object)) {  // np.float64 too: np.sqrt(4) is a number like any other
    out = Scalar(PyFloat_AS_DOUBLE(object));
    return true;
  }
  // The other scalars of NumPy have a width, so they are tensors.
  if (is_numpy(object)) return false;
  return PyLong_Check(object) && read_integer(object, out, beside);
}

std::optional<Device> leading_device(PyObject* object) {
  Tensor* t = tensor_in(object);
  if (!t || (t->rank() == 0 && t->device().is_host())) return {};
  return t->device();
}

bool read_operand(PyObject* object, OperandHolder& out, PyObject* beside) {
  if (Tensor* t = tensor_in(object)) {
    out.operand.tensor = t;
    out.operand.absent = false;
    return true;
  }
  if (read_number(object, out.operand.scalar, beside)) {
    out.operand.absent = false;
    return true;
  }
  if (Offset size; read_symbolic(object, size)) {
    // An integer type too narrow for any size takes those only that are seen to fit.
    Tensor* t = beside ? tensor_in(beside) : nullptr;
    bool narrow = t && is_integer(t->dtype()) && t->dtype() != DType::i64;
    out.operand.scalar = narrow ? Scalar(size.value()) : Scalar(size);
    out.operand.absent = false;
    return true;
  }
  if (object == Py_None || PyUnicode_Check(object) || PyBytes_Check(object)) return false;
  bool list = PyList_Check(object) || PyTuple_Check(object);
  if (!list && !PyObject_CheckBuffer(object) && !PyObject_HasAttrString(object, "__dlpack__"))
    return false;
  std::optional<DeviceScope> there;
  if (auto device = beside ? leading_device(beside) : std::nullopt) there.emplace(*device);
  out.made = tensor_from(object, {}, Copy::always);
  out.operand.tensor = &out.made;
  out.operand.absent = false;
  return true;
}

Tensor read_tensor(PyObject* object, std::string_view what) {
  OperandHolder holder;
  if (!read_operand(object, holder))
    fail(Fault::type, "{}: not a tensor or a number: {}", what, type_name(object));
  if (holder.operand.tensor) return *holder.operand.tensor;
  const Scalar& s = holder.operand.scalar;
  return make_scalar(s, default_dtype(s.kind), true);
}

nb::object shape_tuple(const Shape& shape) {
  nb::object tuple = nb::steal(PyTuple_New(shape.rank()));
  for (int i = 0; i < shape.rank(); ++i) {
    PyTuple_SET_ITEM(tuple.ptr(), i, size_object(shape[i]).release().ptr());
  }
  return tuple;
}

nb::object number_object(const Scalar& s) {
  switch (s.kind) {
    case Kind::boolean:
      return nb::bool_(s.integer != 0);
    case Kind::integer:
      return nb::int_(s.integer);
    case Kind::natural:
      return nb::int_(static_cast<uint64_t>(s.integer));
    case Kind::floating:
      return nb::float_(s.real);
    case Kind::complex:
      break;
  }
  return checked(PyComplex_FromDoubles(s.real, s.imag));
}

nb::object element_object(DType type, const void* at) {
  return number_object(element_at(type, at));
}

}  // namespace tn::python
