// Element types and devices as Python objects.
#include <nanobind/stl/string.h>

#include <array>
#include <map>

#include "base/error.h"
#include "core.h"
#include "ir/dtype.h"
#include "runtime/device.h"
#include "slots.h"
#include "tenon/mesh.h"

namespace tn::python {
namespace {

struct DTypeObject {
  DType type;
};
struct DeviceObject {
  Device device;
};

std::array<PyObject*, kDTypes> dtypes;

DType dtype_at(int i) { return static_cast<DType>(i); }

const char* kind_name(DType type) {
  constexpr const char* kNames[] = {"bool", "signed integer", "unsigned integer", "real floating",
                                    "complex floating"};
  return kNames[static_cast<size_t>(kind_of(type))];
}

std::string_view text_in(PyObject* object) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_Check(object) ? PyUnicode_AsUTF8AndSize(object, &size) : nullptr;
  if (!text) PyErr_Clear();
  return text ? std::string_view(text, static_cast<size_t>(size)) : std::string_view();
}

/// The type that NumPy's letter and number of bytes stand for: "f4".
std::optional<DType> numpy_code(std::string_view code) {
  constexpr std::string_view kLetters = "?iufc";  // in the order of kinds
  for (int i = 0; i < kDTypes; ++i) {
    char letter = kLetters[static_cast<size_t>(kind_of(dtype_at(i)))];
    bool usual = dtype_at(i) != DType::bf16 && !is_storage_only(dtype_at(i));
    if (usual && code == format("{}{}", letter, size_of(dtype_at(i)))) return dtype_at(i);
  }
  return {};
}

/// "i8" and "u8" have 8 bits in the text of graphs and 8 bytes in NumPy: here they are nothing.
bool read_name(std::string_view name, DType& out) {
  if (name == "bool_") name = "bool";
  if (numpy_code(name)) return false;
  std::optional<DType> found = parse_dtype(name);
  if (found) out = *found;
  return found.has_value();
}

/// Python's own types stand for the default type of their kind.
bool read_builtin(PyObject* object, DType& out) {
  if (object == reinterpret_cast<PyObject*>(&PyBool_Type))
    out = DType::b1;
  else if (object == reinterpret_cast<PyObject*>(&PyLong_Type))
    out = DType::i64;
  else if (object == reinterpret_cast<PyObject*>(&PyFloat_Type))
    out = DType::f32;
  else if (object == reinterpret_cast<PyObject*>(&PyComplex_Type))
    out = DType::c64;
  else
    return false;
  return true;
}

/// NumPy's dtypes have `name`, its scalar types `__name__`.
bool read_foreign(PyObject* object, DType& out) {
  const char* attribute = PyType_Check(object) ? "__name__" : "name";
  nb::object name = nb::steal(PyObject_GetAttrString(object, attribute));
  if (!name.is_valid()) {
    if (!PyErr_ExceptionMatches(PyExc_Exception)) throw nb::python_error();  // Ctrl-C
    PyErr_Clear();
  }
  return name.is_valid() && read_name(text_in(name.ptr()), out);
}

PyObject* compare_dtypes(PyObject* a, PyObject* b, int how) noexcept {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    if (how != Py_EQ && how != Py_NE) Py_RETURN_NOTIMPLEMENTED;
    DType other;
    bool equal = try_read_dtype(b, other) && nb::cast<DTypeObject&>(nb::handle(a)).type == other;
    return PyBool_FromLong(equal == (how == Py_EQ));
  });
}

// A type equals its name, so they share a hash.
Py_hash_t hash_of_dtype(PyObject* self) noexcept {
  return guarded<Py_hash_t>(-1, [&] {
    std::string_view name = name_of(nb::cast<DTypeObject&>(nb::handle(self)).type);
    return PyObject_Hash(as_str(name).ptr());
  });
}

PyType_Slot dtype_slots[] = {
    {Py_tp_richcompare, slot(compare_dtypes)}, {Py_tp_hash, slot(hash_of_dtype)}, {0, nullptr}};

/// The type NumPy holds the elements in: float32 for those it does not have.
nb::object numpy_dtype(DType type) {
  bool known = buffer_format(type) != nullptr;
  std::string name(name_of(known ? type : DType::f32));
  return nb::module_::import_("numpy").attr("dtype")(name);
}

void bind_dtype_class(nb::module_& m) {
  nb::class_<DTypeObject>(m, "DType", nb::type_slots(dtype_slots), "An element type.")
      .def("__repr__", [](const DTypeObject& d) { return format("tenon.{}", name_of(d.type)); })
      .def("__str__", [](const DTypeObject& d) { return std::string(name_of(d.type)); })
      // By name: unpickling finds the one object of this type.
      .def("__reduce__", [](const DTypeObject& d) { return std::string(name_of(d.type)); })
      .def_prop_ro("name", [](const DTypeObject& d) { return std::string(name_of(d.type)); })
      .def_prop_ro("itemsize", [](const DTypeObject& d) { return size_of(d.type); })
      .def_prop_ro("kind", [](const DTypeObject& d) { return kind_name(d.type); })
      .def_prop_ro(
          "dtype", [](const DTypeObject& d) { return numpy_dtype(d.type); },
          "The NumPy type: what lets `np.dtype(tn.float32)` work.");
  for (int i = 0; i < kDTypes; ++i) {
    nb::object made = nb::cast(DTypeObject{dtype_at(i)});
    dtypes[static_cast<size_t>(i)] = made.ptr();
    made.inc_ref();
    m.attr(std::string(name_of(dtype_at(i))).c_str()) = made;
  }
}

DType result_type(nb::args args) {
  bool strong = false;
  DType type = DType::b1, given;
  Kind widest = Kind::boolean;
  Scalar number;
  for (nb::handle arg : args) {
    if (read_number(arg.ptr(), number)) {
      if (widest < number.kind) widest = number.kind;
      continue;
    }
    OperandHolder operand;
    if (!try_read_dtype(arg.ptr(), given)) given = read_tensor(arg.ptr(), "result_type").dtype();
    type = strong ? promote(type, given) : given;
    strong = true;
  }
  if (args.size() == 0) fail(Fault::type, "result_type: at least one argument is needed");
  return strong ? promote_weak(type, widest) : default_dtype(widest);
}

}  // namespace

bool try_read_dtype(PyObject* object, DType& out) {
  if (nb::isinstance<DTypeObject>(object)) {
    out = nb::cast<DTypeObject&>(nb::handle(object)).type;
    return true;
  }
  if (PyUnicode_Check(object)) return read_name(text_in(object), out);
  if (read_builtin(object, out)) return true;
  if (is_tensor(object)) return false;
  return read_foreign(object, out);
}

DType read_dtype(PyObject* object) {
  DType type;
  if (try_read_dtype(object, type)) return type;
  std::vector<std::string_view> names;
  for (int i = 0; i < kDTypes; ++i) names.push_back(name_of(dtype_at(i)));
  std::string text = nb::repr(object).c_str();
  std::string_view near = nearest_name(text_in(object), names);
  Hint hint{near.empty() ? "" : format("did you mean {}?", near)};
  if (auto code = numpy_code(text_in(object))) {
    hint.text = format("in NumPy it is {}", name_of(*code));
    if (auto bits = parse_dtype(text_in(object)))
      hint.text += format(": write that, or {} for 8 bits", name_of(*bits));
  }
  fail(Fault::type, hint, "dtype: not an element type: {}", text);
}

nb::object dtype_object(DType type) { return nb::borrow(dtypes[static_cast<size_t>(type)]); }

Device read_device(PyObject* object) {
  if (object == Py_None) return current_device();
  if (nb::isinstance<DeviceObject>(object))
    return nb::cast<DeviceObject&>(nb::handle(object)).device;
  if (PyUnicode_Check(object)) return Device(text_in(object));
  if (nb::object name = nb::getattr(object, "__tenon_device__", nb::none()); !name.is_none())
    return Device(text_in(name.ptr()));  // a mesh
  fail(Fault::type, Hint{"devices have names, 'cuda:0': see tn.devices()"},
       "device: not a device: {}", nb::repr(object).c_str());
}

nb::object device_object(Device device) {
  static auto& objects = *new std::map<int, nb::object>;  // one for each, until the process ends
  nb::object& known = objects[device.kind << 8 | device.index];
  if (!known.is_valid()) known = nb::cast(DeviceObject{device});
  return known;
}

namespace {

/// Python's `with tn.device(...)`. Generators may end scopes in another order, so each knows what
/// was there before it.
struct DeviceContext {
  explicit DeviceContext(Device at) : device(at) {}
  DeviceContext(DeviceContext&&) = default;
  Device device;
  std::vector<std::unique_ptr<DeviceScope>> entered;
};

/// Where a call is to make tensors: at the first of its arguments that is a tensor and no number,
/// since numbers travel. None if that is the default device already.
nb::object elsewhere(nb::tuple args, nb::dict kwargs) {
  auto is_elsewhere = [](nb::handle value, nb::object& place) {
    Tensor* x = tensor_in(value.ptr());
    if (!x || (x->rank() == 0 && x->device().is_host())) return false;
    if (x->device() != current_device()) place = nb::cast(DeviceContext{x->device()});
    return true;
  };
  nb::object place = nb::none();
  for (nb::handle value : args)
    if (is_elsewhere(value, place)) return place;
  for (auto [name, value] : kwargs)
    if (is_elsewhere(value, place)) return place;
  return place;
}

std::string name_of_kind(const DeviceObject& d) {
  std::string text = to_text(d.device);
  return text.substr(0, text.find(':'));
}

void bind_devices(nb::module_& m) {
  using Object = DeviceObject;
  nb::class_<Object>(m, "Device", "A place for elements and ops: `tn.Device('cuda:1')`.")
      .def(
          "__init__",
          [](Object* self, nb::handle name) {
            UserCall call;
            new (self) Object{read_device(name.ptr())};
          },
          nb::arg("name").none())
      .def("__repr__",
           [](const Object& d) {
             return d.device.is_host() ? "tenon.cpu"
                                       : format("tenon.Device('{}')", to_text(d.device));
           })
      .def("__str__", [](const Object& d) { return to_text(d.device); })
      // A device equals its name, so they share a hash.
      .def("__hash__",
           [](const Object& d) { return PyObject_Hash(nb::str(to_text(d.device).c_str()).ptr()); })
      .def(
          "__eq__",
          [](const Object& d, nb::handle other) {
            if (nb::isinstance<Object>(other)) return d.device == nb::cast<Object&>(other).device;
            if (!PyUnicode_Check(other.ptr())) return false;
            std::string_view name = text_in(other.ptr());
            bool is_first = d.device.index == 0 && !is_mesh(d.device);  // "cuda" is "cuda:0"
            return name == to_text(d.device) || (is_first && name == name_of_kind(d));
          },
          nb::arg("other").none())
      .def("__reduce__",
           [](nb::handle self) -> nb::object {
             if (nb::cast<Object&>(self).device.is_host()) return nb::str("cpu");
             return nb::make_tuple(self.type(), nb::make_tuple(nb::str(self)));
           })
      .def_prop_ro("kind", name_of_kind)
      .def_prop_ro("type", name_of_kind, "`kind`, by PyTorch's name.")
      .def_prop_ro("index", [](const Object& d) { return int{d.device.index}; });
  m.attr("cpu") = device_object({});
  nb::class_<DeviceContext>(m, "_DeviceContext", "The default device of a thread, for a while.")
      .def(
          "__init__",
          [](DeviceContext* self, nb::handle device) {
            UserCall call;
            new (self) DeviceContext{read_device(device.ptr())};
          },
          nb::arg("device").none())
      .def_prop_ro("device", [](const DeviceContext& c) { return device_object(c.device); })
      .def("__enter__",
           [](DeviceContext& c) {
             c.entered.push_back(std::make_unique<DeviceScope>(c.device));
             return device_object(c.device);
           })
      .def("__exit__", [](DeviceContext& c, nb::args) { c.entered.pop_back(); });
  m.def("_elsewhere", elsewhere, nb::arg("args"), nb::arg("kwargs"));
  m.def(
      "devices",
      [] {
        nb::list all;
        for (Device device : devices()) all.append(device_object(device));
        return all;
      },
      "The devices of this machine; the CPU is the first.");
  m.def(
      "default_device", [] { return device_object(current_device()); },
      "Return the device of new tensors that nothing else places.");
  m.def(
      "set_default_device",
      [](nb::handle device) {
        UserCall call;
        set_default_device(read_device(device.ptr()));
      },
      nb::arg("device"), "Set the device of new tensors, unless `device=` names another.");
}

}  // namespace

void bind_dtypes(nb::module_& m) {
  bind_dtype_class(m);
  bind_devices(m);
  m.def(
      "result_type", [](nb::args args) { return dtype_object(result_type(args)); }, users_call,
      "The element type of a computation on these tensors, numbers and types.");
  m.def(
      "dtype",
      [](nb::handle o) {
        UserCall call;
        return dtype_object(read_dtype(o.ptr()));
      },
      nb::arg("spec"), "The element type that a name, a Python type or a NumPy dtype stands for.");
}

}  // namespace tn::python
