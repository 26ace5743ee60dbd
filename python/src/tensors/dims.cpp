#include "tensors/dims.h"

#include <cmath>

#include "base/error.h"
#include "calls/call_spec.h"
#include "ir/node.h"
#include "ir/offset.h"
#include "ir/sizes.h"
#include "slots.h"

namespace tn::python {
namespace {

struct SymbolicSize {
  Offset value;
};
PyTypeObject* dim_type = nullptr;

/// An int of Python's or a Dim.
bool read_whole(PyObject* o, Offset& out) {
  if (read_symbolic(o, out)) return true;
  if (!PyLong_Check(o) || PyBool_Check(o)) return false;
  int overflow = 0;
  int64_t value = PyLong_AsLongLongAndOverflow(o, &overflow);
  out = value;
  return !overflow && out == Offset(value);
}

/// The value it has in the call that is traced, which fixes it.
nb::object fixed(PyObject* o) {
  Offset size;
  return read_symbolic(o, size) ? nb::steal(PyLong_FromLongLong(size.value())) : nb::borrow(o);
}

using Operator = PyObject* (*)(PyObject*, PyObject*);
using Arithmetic = Offset (*)(Offset, Offset);

PyObject* power_of(PyObject* a, PyObject* b) { return PyNumber_Power(a, b, Py_None); }

/// With other sizes it is a size, with fractions a number of the run. Tensors do it themselves.
PyObject* mixed(PyObject* a, PyObject* b, Operator apply, bool fraction) {
  for (PyObject* o : {a, b})
    if (Py_TYPE(o) != dim_type && !PyLong_Check(o) && !PyFloat_Check(o)) return not_implemented();
  auto number = fraction ? without_dim : fixed;
  return apply(number(a).ptr(), number(b).ptr());
}

bool divides_plainly(Offset b) { return decide_at_least(b, 1); }

template <Arithmetic kArithmetic, Operator kApply, bool kDivides = false>
PyObject* whole(PyObject* a, PyObject* b) noexcept {
  return for_user<PyObject*>(nullptr, [&]() -> PyObject* {
    Offset x, y;
    bool sizes = read_whole(a, x) && read_whole(b, y) && (!kDivides || divides_plainly(y));
    if (sizes) return size_object(kArithmetic(x, y)).release().ptr();
    return mixed(a, b, kApply, !kDivides);
  });
}

template <Operator kApply, bool kFraction>
PyObject* other(PyObject* a, PyObject* b) noexcept {
  return for_user<PyObject*>(nullptr, [&] { return mixed(a, b, kApply, kFraction); });
}

/// Small whole powers are products.
PyObject* power_of_dims(PyObject* a, PyObject* b, PyObject* modulus) noexcept {
  if (modulus != Py_None) return not_implemented();
  return for_user<PyObject*>(nullptr, [&]() -> PyObject* {
    Offset x, y, product = 1;
    bool sizes = read_whole(a, x) && read_whole(b, y);
    bool small = sizes && y.is_const() && y.raw >= 0 && y.raw <= 4;
    if (!small) return mixed(a, b, power_of, !sizes);
    for (int64_t i = 0; i < y.raw; ++i) product = times(product, x);
    return size_object(product).release().ptr();
  });
}

PyObject* divide_dims(PyObject* a, PyObject* b) noexcept {
  nb::object quotient = nb::steal(PyNumber_FloorDivide(a, b));
  nb::object rest = nb::steal(quotient.is_valid() ? PyNumber_Remainder(a, b) : nullptr);
  return rest.is_valid() ? PyTuple_Pack(2, quotient.ptr(), rest.ptr()) : nullptr;
}

bool decide(int how, Offset a, Offset b) {
  switch (how) {
    case Py_LT:
      return !decide_at_least(a, b);
    case Py_LE:
      return decide_at_least(b, a);
    case Py_GT:
      return !decide_at_least(b, a);
    case Py_GE:
      return decide_at_least(a, b);
    default: {
      Offset apart = a - b;
      bool same = apart.is_const()            ? apart.raw == 0
                  : b.is_const() && b.raw < 0 ? decide_equal(apart.size(), 0)
                                              : decide_equal(a.size(), b.size());
      return same == (how == Py_EQ);
    }
  }
}

PyObject* compare_dims(PyObject* a, PyObject* b, int how) noexcept {
  return for_user<PyObject*>(nullptr, [&]() -> PyObject* {
    Offset x, y;
    if (read_whole(a, x) && read_whole(b, y)) return PyBool_FromLong(decide(how, x, y));
    if (!PyFloat_Check(b)) return not_implemented();
    return PyObject_RichCompare(fixed(a).ptr(), b, how);
  });
}

Offset value_in(PyObject* self) { return nb::inst_ptr<SymbolicSize>(self)->value; }

template <class F>
PyObject* unary_of_dim(PyObject* self, F make) noexcept {
  return for_user<PyObject*>(nullptr, [&] { return make(value_in(self)); });
}

PyObject* negative(PyObject* self) noexcept {
  return unary_of_dim(self, [](Offset n) { return size_object(Offset(0) - n).release().ptr(); });
}
PyObject* positive(PyObject* self) noexcept { return Py_NewRef(self); }
PyObject* absolute(PyObject* self) noexcept {
  return unary_of_dim(self, [](Offset n) {
    return size_object(decide_at_least(n, 0) ? n : Offset(0) - n).release().ptr();
  });
}
PyObject* dim_to_int(PyObject* self) noexcept {
  return unary_of_dim(self, [](Offset n) { return PyLong_FromLongLong(n.value()); });
}
PyObject* dim_to_float(PyObject* self) noexcept {
  return unary_of_dim(self,
                      [](Offset n) { return PyFloat_FromDouble(static_cast<double>(n.value())); });
}
int truth_of_dim(PyObject* self) noexcept {
  return for_user(-1, [&] { return static_cast<int>(decide(Py_NE, value_in(self), 0)); });
}
Py_hash_t hash_of_dim(PyObject* self) noexcept {
  nb::object value = nb::steal(dim_to_int(self));
  return value.is_valid() ? PyObject_Hash(value.ptr()) : -1;
}
PyObject* text_of_dim(PyObject* self) noexcept {
  return guarded<PyObject*>(nullptr,
                            [&] { return PyUnicode_FromString(to_text(value_in(self)).c_str()); });
}

Offset plus(Offset a, Offset b) { return a + b; }
Offset minus(Offset a, Offset b) { return a - b; }

PyType_Slot dim_slots[] = {
    {Py_nb_add, slot(whole<plus, PyNumber_Add>)},
    {Py_nb_subtract, slot(whole<minus, PyNumber_Subtract>)},
    {Py_nb_multiply, slot(whole<times, PyNumber_Multiply>)},
    {Py_nb_floor_divide, slot(whole<floor_quotient, PyNumber_FloorDivide, true>)},
    {Py_nb_remainder, slot(whole<floor_remainder, PyNumber_Remainder, true>)},
    {Py_nb_true_divide, slot(other<PyNumber_TrueDivide, true>)},
    {Py_nb_and, slot(other<PyNumber_And, false>)},
    {Py_nb_or, slot(other<PyNumber_Or, false>)},
    {Py_nb_xor, slot(other<PyNumber_Xor, false>)},
    {Py_nb_lshift, slot(other<PyNumber_Lshift, false>)},
    {Py_nb_rshift, slot(other<PyNumber_Rshift, false>)},
    {Py_nb_divmod, slot(divide_dims)},
    {Py_nb_power, slot(power_of_dims)},
    {Py_nb_negative, slot(negative)},
    {Py_nb_positive, slot(positive)},
    {Py_nb_absolute, slot(absolute)},
    {Py_nb_bool, slot(truth_of_dim)},
    {Py_nb_int, slot(dim_to_int)},
    {Py_nb_float, slot(dim_to_float)},
    {Py_nb_index, slot(dim_to_int)},
    {Py_tp_richcompare, slot(compare_dims)},
    {Py_tp_hash, slot(hash_of_dim)},
    {Py_tp_repr, slot(text_of_dim)},
    {Py_tp_str, slot(text_of_dim)},
    {0, nullptr},
};

}  // namespace

nb::object size_object(Offset size) {
  if (size.is_const()) return nb::steal(PyLong_FromLongLong(size.raw));
  return nb::cast(SymbolicSize{size});
}

bool read_symbolic(PyObject* object, Offset& out) {
  if (Py_TYPE(object) != dim_type) return false;
  out = value_in(object);
  return true;
}

nb::object without_dim(PyObject* object) {
  Offset size;
  if (!read_symbolic(object, size)) return nb::borrow(object);
  return wrapped(make_scalar(Scalar(size), DType::i64, true));
}

Offset read_size(PyObject* object, std::string_view what, std::string_view op) {
  Offset size;
  return read_symbolic(object, size) ? size : Offset(read_int(object, what, op));
}

void bind_dims(nb::module_& m) {
  nb::class_<SymbolicSize> type(
      m, "Dim", nb::type_slots(dim_slots),
      "A size of a tensor inside a compiled function that serves several sizes.\n\n"
      "Arithmetic with integers and other sizes gives sizes, with fractions a number that is "
      "known\n"
      "when the function runs. A comparison is decided as in the call being traced, and holds for\n"
      "calls in which it comes out the same; where Python needs the integer itself (int, range,\n"
      "len, hash_of_dim), the size is fixed.");
  dim_type = reinterpret_cast<PyTypeObject*>(type.ptr());
}

}  // namespace tn::python
