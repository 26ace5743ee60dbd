// Numbers that are given when a traced function runs: in Python they pass for plain ones.
#include "core.h"
#include "ir/number.h"
#include "ir/trace.h"

namespace tn::python {

PyTypeObject* number_type;

namespace {

/// A number of Python's of the same kind.
PyObject* example_of(PyObject* self) {
  static PyObject *integer = PyLong_FromLong(1), *real = PyFloat_FromDouble(1);
  Kind kind = kind_of_number(*tensor_in(self));
  return kind == Kind::boolean ? Py_True : kind < Kind::floating ? integer : real;
}

/// There is what a plain number has; `isinstance` asks for the class. The value of what is no
/// operator is not known.
PyObject* attribute(PyObject* self, PyObject* name) noexcept {
  return for_user<PyObject*>(nullptr, [&]() -> PyObject* {
    nb::object plain = nb::steal(PyObject_GetAttr(example_of(self), name));
    if (!plain.is_valid()) return nullptr;
    if (nb::handle(name).equal(nb::str("__class__"))) return plain.release().ptr();
    bool is_operator = PyUnicode_READ_CHAR(name, 0) == '_';
    if (!is_operator) fail_unknown_value();
    return PyObject_GenericGetAttr(self, name);
  });
}

}  // namespace

void make_number_type() {
  nb::handle tensor = reinterpret_cast<PyObject*>(tensor_type);
  nb::dict members;
  members["__slots__"] = nb::tuple();
  members["__module__"] = "tenon";
  nb::object made = tensor.type()("Number", nb::make_tuple(tensor), members);
  number_type = reinterpret_cast<PyTypeObject*>(made.ptr());
  number_type->tp_getattro = attribute;
  made.release();  // lives as long as the module
}

}  // namespace tn::python
