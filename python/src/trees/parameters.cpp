// The parameters of modules, found without running Python code: every step of a loop asks for them.
#include "base/error.h"
#include "core.h"
#include "ir/dtype.h"
#include "ir/watch.h"

namespace tn::python {

PyTypeObject* module_type = nullptr;

namespace {

/// An error where a module or a list holds itself.
struct Recursion {
  static constexpr int kDeepest = 1000;
  static inline thread_local int depth = 0;
  Recursion() {
    if (depth >= kDeepest)
      fail("parameters: a module or a list holds itself, or is nested deeper than {}", kDeepest);
    ++depth;
  }
  ~Recursion() { --depth; }
};

bool contains(const nb::object& names, nb::handle name) {
  int found = PySequence_Contains(names.ptr(), name.ptr());
  if (found < 0) throw nb::python_error();
  return found;
}

nb::object items_of(nb::handle dict) { return checked(PyMapping_Items(dict.ptr())); }

bool is_trained(const Tensor& x) {
  return is_inexact(x.dtype()) && !is_storage_only(x.dtype()) &&
         !(watch_bits(*x.node()) & kRefused);
}

nb::object parameters_of(nb::handle module, bool frozen);

/// The parameters in an attribute, with the frozen ones or without; null where there are none.
nb::object parameters_in(nb::handle value, bool frozen, bool is_frozen) {
  PyObject* o = value.ptr();
  if (PyLong_Check(o) || PyFloat_Check(o) || PyUnicode_Check(o) || o == Py_None) return {};
  if (PyObject_TypeCheck(o, tensor_type)) {
    bool wanted = frozen || (!is_frozen && is_trained(self_tensor(o)));
    return wanted ? nb::borrow(value) : nb::object();
  }
  Recursion deeper;
  if (PyObject_TypeCheck(o, module_type)) {
    nb::object inside = parameters_of(value, frozen);
    return PyDict_GET_SIZE(inside.ptr()) ? inside : nb::object();
  }
  if (PyDict_Check(o)) {
    nb::dict parts;
    for (nb::handle item : nb::list(items_of(value)))
      if (nb::object part = parameters_in(item[1], frozen, is_frozen)) parts[item[0]] = part;
    return parts.size() ? nb::object(parts) : nb::object();
  }
  if (!PyList_Check(o) && !PyTuple_Check(o)) return {};
  nb::list parts;
  bool any = false;
  for (nb::handle item : value) {
    nb::object part = parameters_in(item, frozen, is_frozen);
    any |= part.is_valid();
    parts.append(part.is_valid() ? part : nb::dict());  // the others keep their places
  }
  return any ? nb::object(parts) : nb::object();
}

nb::object parameters_of(nb::handle module, bool frozen) {
  nb::dict selected;
  nb::object names = module.attr("_frozen"), buffers = module.attr("buffers");
  nb::object attributes = checked(PyObject_GenericGetDict(module.ptr(), nullptr));
  for (nb::handle item : nb::list(items_of(attributes))) {
    nb::object name = item[0];
    if (PyUnicode_GET_LENGTH(name.ptr()) && PyUnicode_READ_CHAR(name.ptr(), 0) == '_') continue;
    bool is_frozen = !frozen && (contains(names, name) || contains(buffers, name));
    if (nb::object part = parameters_in(item[1], frozen, is_frozen)) selected[name] = part;
  }
  return selected;
}

void add_named(nb::handle tree, const nb::object& path, nb::list& found) {
  if (PyObject_TypeCheck(tree.ptr(), tensor_type)) return found.append(nb::make_tuple(path, tree));
  if (PyUnicode_Check(tree.ptr()) || PyBytes_Check(tree.ptr()))
    fail(Fault::type, "parameters: a tensor is expected, given {}", nb::repr(tree).c_str());
  Recursion deeper;
  auto below = [&](nb::handle key) {
    bool first = PyUnicode_GET_LENGTH(path.ptr()) == 0;
    return checked(first ? PyObject_Str(key.ptr())
                         : PyUnicode_FromFormat("%U.%S", path.ptr(), key.ptr()));
  };
  if (PyDict_Check(tree.ptr())) {
    for (nb::handle item : nb::list(items_of(tree))) add_named(item[1], below(item[0]), found);
    return;
  }
  size_t i = 0;
  for (nb::handle item : tree) add_named(item, below(nb::int_(i++)), found);
}

nb::list named_tensors(nb::handle tree, nb::object path) {
  nb::list found;
  add_named(tree, path, found);
  return found;
}

}  // namespace

void bind_parameters(nb::module_& m) {
  m.def("_register_module",
        [](nb::handle cls) { module_type = reinterpret_cast<PyTypeObject*>(cls.inc_ref().ptr()); });
  m.def("_parameters_of", parameters_of, nb::arg("module"), nb::arg("frozen"));
  m.def("_named_tensors", named_tensors, nb::arg("tree"), nb::arg("path"));
}

}  // namespace tn::python
