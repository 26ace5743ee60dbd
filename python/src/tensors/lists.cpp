// Tensors from Python data: numbers, nested lists, other tensors, arrays.
#include <complex>
#include <optional>

#include "base/error.h"
#include "core.h"
#include "ir/element.h"
#include "ir/emit.h"
#include "ir/node.h"
#include "ir/number.h"
#include "runtime/device.h"

namespace tn::python {
namespace {

/// A number without a width. Data of NumPy keep theirs: here np.float64 is no such number.
bool read_plain(PyObject* o, Scalar& out) { return !is_numpy(o) && read_number(o, out); }

bool is_list(PyObject* o) { return PyList_Check(o) || PyTuple_Check(o); }

std::span<PyObject*> items_of(PyObject* o) {
  return {PySequence_Fast_ITEMS(o), static_cast<size_t>(PySequence_Fast_GET_SIZE(o))};
}

/// What a nested list holds.
struct ListFacts {
  Shape shape;
  Kind kind = Kind::boolean;
  bool has_negative = false, has_natural = false;  // an integer below 0, one beyond int64
  bool has_tensors = false;                        // something other than numbers
};

std::string path_text(const std::vector<size_t>& path) {
  std::string text;
  for (size_t i : path) text += format("[{}]", i);
  return text;
}

/// A tensor or array, not a scalar.
bool holds_array(PyObject* o) {
  if (Tensor* t = tensor_in(o)) return t->rank() > 0;
  return PyObject_CheckBuffer(o) && !PyBytes_Check(o);
}

/// Walks the list, checks that it is regular, and collects its facts.
struct ListReader {
  ListFacts facts;
  std::vector<size_t> path;

  void measure(PyObject* o) {
    while (is_list(o)) {
      std::span<PyObject*> items = items_of(o);
      if (facts.shape.rank() == kMaxRank) fail("array: lists nested deeper than {}", kMaxRank);
      facts.shape.push_back(static_cast<int64_t>(items.size()));
      if (items.empty()) return;
      o = items[0];
    }
    Scalar s;  // an array or tensor of some rank in the place of a number: such lists are stacked
    facts.has_tensors = facts.shape.rank() > 0 && !read_plain(o, s) && holds_array(o);
  }

  [[noreturn]] void ragged(size_t depth, const std::string& found) const {
    std::string wanted = static_cast<int>(depth) < facts.shape.rank()
                             ? format("a list of {}", facts.shape[static_cast<int>(depth)].raw)
                             : std::string("a number");
    fail("array: ragged list: {} at data{}, {} elsewhere", found, path_text(path), wanted);
  }

  void check(PyObject* o, size_t depth) {
    bool leaf = static_cast<int>(depth) == facts.shape.rank();
    if (leaf && is_list(o)) ragged(depth, format("a list of {}", items_of(o).size()));
    if (leaf) return note(o);
    if (!is_list(o)) {
      if (is_tensor(o) || PyObject_CheckBuffer(o)) {
        facts.has_tensors = true;
        return;
      }
      ragged(depth, nb::repr(o).c_str());
    }
    std::span<PyObject*> items = items_of(o);
    if (static_cast<int64_t>(items.size()) != facts.shape[static_cast<int>(depth)].raw)
      ragged(depth, format("a list of {}", items.size()));
    path.push_back(0);
    for (size_t i = 0; i < items.size(); ++i) {
      path.back() = i;
      check(items[i], depth + 1);
    }
    path.pop_back();
  }

  void note(PyObject* o) {
    Scalar s;
    if (!read_plain(o, s)) {
      OperandHolder holder;
      if (!read_operand(o, holder))
        fail(Fault::type, "array: not a number: {} at data{}", nb::repr(o).c_str(),
             path_text(path));
      facts.has_tensors = true;
      return;
    }
    facts.has_natural |= s.kind == Kind::natural;
    facts.has_negative |= s.kind == Kind::integer && s.integer < 0;
    if (facts.kind < s.kind) facts.kind = s.kind;
  }
};

template <class T>
T as(const Scalar& s) {
  if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>)
    return T(static_cast<typename T::value_type>(s.real),
             static_cast<typename T::value_type>(s.imag));
  else if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(s.real);
  else
    return static_cast<T>(s.is_integral() ? s.integer : static_cast<int64_t>(s.real));
}

template <class T>
void fill(PyObject* o, T*& out) {
  if (is_list(o)) {
    for (PyObject* item : items_of(o)) fill(item, out);
    return;
  }
  Scalar s;
  read_number(o, s);
  *out++ = as<T>(s);
}

template <class T>
Tensor filled(PyObject* o, const Shape& shape, DType type) {
  std::vector<T> values(static_cast<size_t>(shape.elements().value()));
  T* at = values.data();
  fill(o, at);
  return from_bytes(values.data(), type, shape);
}

/// Lists that hold tensors or arrays: each item becomes a tensor, and they are stacked.
Tensor stacked(PyObject* o, int depth = 0) {
  if (!is_list(o)) return tensor_from(o, {}, Copy::always);
  if (depth == kMaxRank) fail("array: lists nested deeper than {}", kMaxRank);
  Tensors parts;
  for (PyObject* item : items_of(o)) parts.push_back(stacked(item, depth + 1));
  const OpDef* stack = find_op("stack");
  invariant(stack != nullptr, "array: no op `stack`");
  AttrBuffer attrs(*stack->attrs);
  promote_all(parts, "array", any_type);
  return call_with(*stack, parts, attrs.data)[0];
}

/// Python integers must fit the element type asked for; floats may round.
void check_range(PyObject* o, DType type) {
  if (is_list(o)) {
    for (PyObject* item : items_of(o)) check_range(item, type);
    return;
  }
  Scalar s;
  if (read_plain(o, s) && !fits(s, type))
    throw_python(out_of_range, "array: the number {} does not fit {}", to_text(s, 17), type);
}

DType natural_type(const ListFacts& facts) {
  if (facts.kind == Kind::natural) {
    if (facts.has_negative)
      throw_python(out_of_range, "array: negative integers and integers beyond int64 in one list");
    return DType::u64;
  }
  bool empty = facts.shape.rank() && facts.shape.elements().value() == 0;
  return empty ? DType::f32 : default_dtype(facts.kind);
}

Tensor from_list(PyObject* o, Maybe<DType> dtype) {
  ListReader reader;
  reader.measure(o);
  if (!reader.facts.has_tensors) reader.check(o, 0);
  const ListFacts& facts = reader.facts;
  if (facts.has_tensors) {
    Tensor all = stacked(o);
    return dtype ? cast_to(all, *dtype) : all;
  }
  DType type = natural_type(facts);
  DType wanted = dtype.value_or(type);
  if (is_integer(wanted)) check_range(o, wanted);
  switch (type) {
    case DType::b1:
      return cast_to(filled<uint8_t>(o, facts.shape, type), wanted);
    case DType::i64:
      return cast_to(filled<int64_t>(o, facts.shape, type), wanted);
    case DType::u64:
      return cast_to(filled<uint64_t>(o, facts.shape, type), wanted);
    case DType::c64:
      if (wanted == DType::c64) return filled<std::complex<float>>(o, facts.shape, wanted);
      return cast_to(filled<std::complex<double>>(o, facts.shape, DType::c128), wanted);
    default:
      if (wanted == DType::f32) return filled<float>(o, facts.shape, wanted);
      return cast_to(filled<double>(o, facts.shape, DType::f64), wanted);
  }
}

/// NumPy cannot export some element types as buffers; their bits can.
Tensor from_extension_array(PyObject* o, Copy copy) {
  nb::object dtype = nb::steal(PyObject_GetAttrString(o, "dtype"));
  if (!dtype.is_valid()) {
    PyErr_Clear();
    return {};
  }
  DType type;
  if (!try_read_dtype(dtype.ptr(), type) || buffer_format(type)) return {};
  check_may_copy(copy);
  nb::object bits = nb::borrow(o).attr("view")(size_of(type) == 1 ? "uint8" : "uint16");
  Tensor plain = tensor_from_buffer(bits.ptr(), Copy::always);
  return from_bytes(plain.data(), type, plain.shape());
}

/// Refuses NumPy's dates, strings and objects by name, and puts foreign byte orders right.
nb::object checked_numpy(PyObject* o) {
  nb::object array = nb::borrow(o), dtype = array.attr("dtype");
  DType type;
  if (!try_read_dtype(dtype.ptr(), type))
    fail(Fault::type, "asarray: no element type for {}", nb::repr(dtype).c_str());
  if (nb::cast<bool>(dtype.attr("isnative"))) return array;
  return array.attr("astype")(dtype.attr("newbyteorder")("="));
}

Tensor from_array(PyObject* o, Copy copy) {
  nb::object checked;
  if (is_numpy(o) && PyObject_HasAttrString(o, "dtype")) {
    checked = checked_numpy(o);
    o = checked.ptr();
  }
  if (PyObject_CheckBuffer(o))
    if (Tensor t = tensor_from_buffer(o, copy); t.defined()) return t;
  if (Tensor t = from_extension_array(o, copy); t.defined()) return t;
  if (PyObject_HasAttrString(o, "__dlpack__")) return tensor_from_dlpack(o, copy);
  if (PyObject_HasAttrString(o, "__array__")) {
    nb::object array = nb::borrow(o).attr("__array__")();
    if (Tensor t = tensor_from_buffer(array.ptr(), copy); t.defined()) return t;
  }
  fail(Fault::type, "asarray: cannot make a tensor from {}", type_name(o));
}

/// `range`, generators and other sequences become lists.
nb::object listed(PyObject* o) {
  bool is_other = PyUnicode_Check(o) || PyBytes_Check(o) || PyDict_Check(o);
  if (is_other || !PySequence_Check(o) || PyObject_CheckBuffer(o)) return {};
  if (PyObject_HasAttrString(o, "__dlpack__") || PyObject_HasAttrString(o, "__array__")) return {};
  nb::object list = nb::steal(PySequence_List(o));
  if (!list.is_valid()) PyErr_Clear();
  return list;
}

}  // namespace

static Tensor tensor_on_host(PyObject* object, Maybe<DType> dtype, Copy copy) {
  Scalar s;
  if (is_list(object) || read_plain(object, s)) {
    check_may_copy(copy);
    return from_list(object, dtype);
  }
  if (nb::object list = listed(object); list.is_valid()) {
    check_may_copy(copy);
    return from_list(list.ptr(), dtype);
  }
  Tensor made = from_array(object, copy);
  if (dtype && *dtype != made.dtype()) {
    if (copy == Copy::never)
      fail("asarray: {} cannot become {} without a copy", made.dtype(), *dtype);
    made = cast_to(made, *dtype);
  }
  return made;
}

Tensor tensor_from(PyObject* object, Maybe<DType> dtype, Copy copy) {
  Tensor* t = tensor_in(object);
  if (!t) {
    if (!current_device().is_host()) check_may_copy(copy);
    return tensor_on_host(object, dtype, copy).to(current_device());
  }
  Tensor made = dtype ? cast_to(*t, *dtype) : is_given_number(*t) ? settled(*t) : *t;
  if (copy == Copy::never && dtype && *dtype != t->dtype())
    fail("asarray: {} cannot become {} without a copy", t->dtype(), *dtype);
  return made;  // values never change, so sharing is copying
}

void bind_creation(nb::module_& m) {
  auto make = [](nb::handle obj, nb::handle dtype, nb::handle device, Copy copy) {
    UserCall call;
    Maybe<DType> type;
    if (!dtype.is_none()) type = read_dtype(dtype.ptr());
    std::optional<DeviceScope> there;
    if (!device.is_none()) there.emplace(read_device(device.ptr()));
    Tensor made = tensor_from(obj.ptr(), type, copy);
    if (there && made.device() != current_device()) check_may_copy(copy);
    return wrapped(there ? made.to(current_device()) : made);
  };
  m.def(
      "array",
      [make](nb::handle obj, nb::handle dtype, nb::handle device) {
        return make(obj, dtype, device, Copy::always);
      },
      nb::arg("obj").none(), nb::arg("dtype") = nb::none(), nb::kw_only(),
      nb::arg("device") = nb::none(),
      "A tensor with a copy of the data: numbers, nested lists, arrays. Floats become float32,\n"
      "integers int64.");
  m.def(
      "asarray",
      [make](nb::handle obj, nb::handle dtype, nb::handle device, nb::handle copy) {
        return make(obj, dtype, device, read_copy(copy, Copy::if_writable));
      },
      nb::arg("obj").none(), nb::arg("dtype") = nb::none(), nb::kw_only(),
      nb::arg("device") = nb::none(), nb::arg("copy") = nb::none(),
      "A tensor of the data: a copy, except of read-only arrays, which are shared. `copy=False`\n"
      "shares writable ones too: they must not change while results that depend on them are "
      "pending.");
  m.def(
      "from_dlpack",
      [](nb::handle obj, nb::handle device, nb::handle copy) {
        UserCall call;
        Copy how = read_copy(copy, Copy::if_needed);
        Tensor* given = tensor_in(obj.ptr());
        Tensor made = given ? *given : tensor_from_dlpack(obj.ptr(), how);
        return wrapped(device.is_none() ? made : made.to(read_device(device.ptr())));
      },
      nb::arg("x"), nb::kw_only(), nb::arg("device") = nb::none(), nb::arg("copy") = nb::none(),
      "A tensor that shares the memory of an object with `__dlpack__`, which must not change "
      "while\n"
      "results that depend on it are pending.");
}

}  // namespace tn::python
