// Attribute values from Python, one converter per kind of field.
#include "base/error.h"
#include "calls/call_spec.h"
#include "ir/sizes.h"
#include "ir/visit_field.h"
#include "tensors/dims.h"

namespace tn::python {
namespace {

bool is_integer_like(PyObject* o) { return PyIndex_Check(o) && !PyBool_Check(o); }

/// Integers of a sequence, nested ones in order; an integer alone is a list of one.
void each_integer(const FieldSlot& f, PyObject* value, auto&& use, int depth = 0) {
  if (is_integer_like(value)) {
    use(read_size(value, f.name, f.op));
    return;
  }
  if (PyUnicode_Check(value) || !PySequence_Check(value)) f.refuse("an integer or several", value);
  if (depth > kMaxRank) fail("{}: {} is nested deeper than {}", f.op, f.name, kMaxRank);
  nb::object items = checked(PySequence_Fast(value, "a sequence of integers is needed"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.ptr()); ++i)
    each_integer(f, PySequence_Fast_GET_ITEM(items.ptr(), i), use, depth + 1);
}

template <class List>
List read_axes(const FieldSlot& f, PyObject* value) {
  if (is_tensor(value) && tensor_in(value)->rank() > 0)  // of max(x, y), say, as PyTorch has it
    f.refuse("an integer or several", value);
  List list;
  each_integer(f, value, [&](Offset given) {
    int64_t i = given.value();
    if (i != static_cast<int32_t>(i)) fail(Fault::index, "{}: axis {} is out of range", f.op, i);
    list.push_back(Axis(static_cast<int>(i)));
  });
  return list;
}

uint8_t read_choice(const FieldSlot& f, PyObject* value) {
  const char* text = PyUnicode_Check(value) ? PyUnicode_AsUTF8(value) : nullptr;
  if (!text) f.refuse("a string", value);
  for (size_t i = 0; i < f.choices.size(); ++i)
    if (f.choices[i] == text) return static_cast<uint8_t>(i);
  std::string_view near = nearest_name(text, f.choices);
  fail(Hint{near.empty() ? "" : format("did you mean '{}'?", near)},
       "{}: {} must be one of {}: '{}'", f.op, f.name, join(f.choices, ", "), text);
}

double read_real(const FieldSlot& f, PyObject* value) {
  if (PyFloat_CheckExact(value)) return PyFloat_AS_DOUBLE(value);
  if (PyBool_Check(value) || PyComplex_Check(value) || PyUnicode_Check(value))
    f.refuse("a number", value);
  double number = PyFloat_AsDouble(value);
  if (number == -1 && PyErr_Occurred()) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
    PyErr_Clear();
    f.refuse("a number", value);
  }
  return number;
}

bool read_boolean(const FieldSlot& f, PyObject* value) {
  if (PyBool_Check(value)) return value == Py_True;
  int truth = PyLong_Check(value) || PyObject_CheckBuffer(value) ? PyObject_IsTrue(value) : -1;
  if (truth < 0) {
    PyErr_Clear();
    f.refuse("True or False", value);
  }
  return truth;
}

Scalar read_scalar(const FieldSlot& f, PyObject* value) {
  Scalar s;
  if (read_number(value, s)) return s;
  if (Offset size; read_symbolic(value, size)) return Scalar(size);
  OperandHolder holder;
  if (!read_operand(value, holder) || holder.operand.tensor->size() != 1)
    f.refuse("a number", value);
  evaluate(*holder.operand.tensor);
  return item_of(*holder.operand.tensor);
}

}  // namespace

int64_t read_int(PyObject* object, std::string_view what, std::string_view op) {
  std::string_view colon = op.empty() ? "" : ": ";
  nb::object number = nb::steal(PyNumber_Index(object));
  if (!number.is_valid()) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
    PyErr_Clear();
    fail(Fault::type, "{}{}{} must be an integer: {}", op, colon, what, nb::repr(object).c_str());
  }
  int overflow = 0;
  int64_t value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow) throw_python(out_of_range, "{}{}{} does not fit 64 bits", op, colon, what);
  return value;
}

void FieldSlot::refuse(const char* wanted, PyObject* value) const {
  // PyTorch's `max(x, y)`.
  bool of_two = is_tensor(value) && (op == "max" || op == "min");
  Hint hint{of_two ? format("tn.{}imum(x, y) compares two tensors", op) : ""};
  fail(Fault::type, hint, "{}: {} must be {}: {}", op, name, wanted, nb::repr(value).c_str());
}

void FieldSlot::write(char* attrs, PyObject* value, std::vector<nb::object>& keep) const {
  if (set >= 0) *reinterpret_cast<bool*>(attrs + set) = true;
  auto whole = [&] {
    if (!is_integer_like(value)) refuse("an integer", value);
    return value;
  };
  auto list = [&](auto& to, auto&& item) {
    std::remove_reference_t<decltype(to)> read;
    each_integer(*this, value, [&](Offset n) { read.push_back(item(n)); });
    to = read;
  };
  visit_field(Field{.name = name, .kind = kind, .at = attrs + at},
              Overloads{
                  [&](bool& to) { to = read_boolean(*this, value); },
                  [&](int64_t& to) { to = read_int(whole(), name, op); },
                  [&](double& to) { to = read_real(*this, value); },
                  [&](Axis& to) { to = read_axes<Axes>(*this, whole())[0]; },
                  [&](Axes& to) { to = read_axes<Axes>(*this, value); },
                  [&](Perm& to) { to = read_axes<Perm>(*this, value); },
                  [&](Dim& to) {
                    Offset n = read_size(whole(), name, op);
                    if (!decide_at_least(n, 0)) fail("{}: {} is negative: {}", op, name, n);
                    to = n.size();
                  },
                  [&](Shape& to) {
                    list(to, [&](Offset n) {
                      bool fits = n.is_const() ? n.raw >= -1 : decide_at_least(n, 0);
                      if (!fits) fail("{}: {} has a negative size: {}", op, name, n);
                      return n.size();
                    });
                  },
                  [&](Ints& to) { list(to, [](Offset n) { return n.value(); }); },
                  [&](Offsets& to) { list(to, [](Offset n) { return n; }); },
                  [&](DType& to) { to = read_dtype(value); },
                  [&](uint8_t& to) { to = read_choice(*this, value); },
                  [&](Scalar& to) { to = read_scalar(*this, value); },
                  [&](GraphRef&) { refuse("left to the library", value); },
                  [&](std::string_view& to) {
                    Py_ssize_t size = 0;
                    const char* text =
                        PyUnicode_Check(value) ? PyUnicode_AsUTF8AndSize(value, &size) : nullptr;
                    if (!text) refuse("a string", value);
                    keep.push_back(nb::borrow(value));
                    to = {text, static_cast<size_t>(size)};
                  },
              });
}

static nb::object list_of(const auto& items, auto&& number) {
  nb::list made;
  for (const auto& item : items) made.append(number(item));
  return nb::tuple(made);
}

nb::object field_object(const Field& f) {
  if (f.set && !*f.set) return nb::none();
  auto axis = [](Axis a) { return a.i; };
  auto size = [](auto d) { return size_object(d); };
  return visit_field(f, Overloads{
                            [](bool v) -> nb::object { return nb::cast(v); },
                            [](int64_t v) -> nb::object { return nb::cast(v); },
                            [](double v) -> nb::object { return nb::cast(v); },
                            [](Axis v) -> nb::object { return nb::cast(v.i); },
                            [&](const Axes& v) { return list_of(v, axis); },
                            [&](const Perm& v) { return list_of(v, axis); },
                            [](Dim v) { return size_object(v); },
                            [&](const Shape& v) { return list_of(v, size); },
                            [](const Ints& v) { return list_of(v, [](int64_t i) { return i; }); },
                            [&](const Offsets& v) { return list_of(v, size); },
                            [](DType v) { return dtype_object(v); },
                            [&](uint8_t v) -> nb::object { return as_str(f.choices[v]); },
                            [](std::string_view v) -> nb::object { return as_str(v); },
                            [](GraphRef) -> nb::object { return nb::none(); },
                            [](const Scalar& v) { return number_object(v); },
                        });
}

}  // namespace tn::python
