// The functions and methods of ops: one callable type, made from the op table at import.

#include <algorithm>
#include <cstddef>
#include <deque>

#include "base/error.h"
#include "calls/call_spec.h"
#include "ir/call_order.h"
#include "ir/emit.h"
#include "ir/named_calls.h"

namespace tn::python {
namespace {

struct OpFunction {
  PyObject_HEAD vectorcallfunc vectorcall;
  const CallSpec* spec;
};

PyTypeObject* function_type;

PyObject* vectorcall(PyObject* self, PyObject* const* args, size_t flags, PyObject* keywords) {
  return for_user<PyObject*>(nullptr, [&] {
    const CallSpec& spec = *reinterpret_cast<OpFunction*>(self)->spec;
    auto count = static_cast<size_t>(PyVectorcall_NARGS(flags));
    return call_python(spec, args, count, keywords).release().ptr();
  });
}

PyObject* bind_method(PyObject* self, PyObject* object, PyObject*) {
  if (!object || object == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, object);
}

PyObject* text_object(std::string_view text) {
  return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}

std::deque<CallSpec>& all_specs() {
  static auto& specs = *new std::deque<CallSpec>;  // the functions refer to them
  return specs;
}

const CallSpec& spec_of(PyObject* self) { return *reinterpret_cast<OpFunction*>(self)->spec; }

PyObject* get_name(PyObject* self, void*) { return text_object(spec_of(self).op->name); }
std::string module_of(PyObject* self) {
  std::string_view inner = spec_of(self).op->module;
  return format("tenon{}{}", inner.empty() ? "" : ".", inner);
}
PyObject* get_module(PyObject* self, void*) { return text_object(module_of(self)); }
PyObject* get_doc(PyObject* self, void*) { return text_object(spec_of(self).op->rules->doc); }

/// Built on demand: importing `inspect` costs more than importing this package.
PyObject* get_signature(PyObject* self, void*) {
  return guarded<PyObject*>(nullptr, [&] {
    nb::object make = nb::module_::import_("tenon._signature").attr("make");
    return make(describe_params(spec_of(self))).release().ptr();
  });
}

PyObject* repr(PyObject* self) {
  return text_object(format("<op {}.{}>", module_of(self), spec_of(self).op->name));
}

/// By name, as module-level functions are pickled.
PyObject* reduce(PyObject* self, PyObject*) { return get_name(self, nullptr); }

PyGetSetDef properties[] = {{"__name__", get_name, nullptr, nullptr, nullptr},
                            {"__qualname__", get_name, nullptr, nullptr, nullptr},
                            {"__module__", get_module, nullptr, nullptr, nullptr},
                            {"__doc__", get_doc, nullptr, nullptr, nullptr},
                            {"__signature__", get_signature, nullptr, nullptr, nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};
PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(OpFunction, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                       {Py_tp_descr_get, reinterpret_cast<void*>(bind_method)},
                       {Py_tp_repr, reinterpret_cast<void*>(repr)},
                       {Py_tp_getset, properties},
                       {Py_tp_methods, methods},
                       {Py_tp_members, members},
                       {0, nullptr}};
PyType_Spec function_spec = {"tenon.Op", sizeof(OpFunction), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL |
                                 Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                             slots};

nb::object make_function(const CallSpec& spec) {
  OpFunction* made = PyObject_New(OpFunction, function_type);
  if (!made) throw nb::python_error();
  made->vectorcall = vectorcall;
  made->spec = &spec;
  return nb::steal(reinterpret_cast<PyObject*>(made));
}

PyTypeObject* make_result_type(const OpDef& op) {
  std::string name = format("tenon.{}_result", op.name);
  std::vector<std::string> names(op.results.begin(), op.results.end());
  std::vector<PyStructSequence_Field> fields;
  for (const std::string& n : names) fields.push_back({n.c_str(), nullptr});
  fields.push_back({nullptr, nullptr});
  PyStructSequence_Desc desc = {name.c_str(), nullptr, fields.data(), op.results.size()};
  static auto& kept = *new std::deque<std::vector<std::string>>;  // the type refers to the names
  kept.push_back(std::move(names));
  for (size_t i = 0; i < kept.back().size(); ++i) fields[i].name = kept.back()[i].c_str();
  PyTypeObject* type = PyStructSequence_NewType(&desc);
  if (!type) throw nb::python_error();
  return type;
}

CallParam field_param(const Field& f, int place) {
  return {CallParam::Role::field, PyUnicode_InternFromString(f.name), f.name, f.required, place};
}

/// Ops whose first parameter is a tensor, other than the key of random ones, are methods, except
/// where the name is a property or lives in a module of its own.
bool is_method(const CallSpec& spec) {
  if (spec.params.empty() || !spec.params[0].required || !spec.op->module.empty()) return false;
  bool property = spec.op->name == "real" || spec.op->name == "imag";
  bool random = spec.op->args.size() > 0 && spec.op->args[0].name == "key";
  return spec.params[0].role == CallParam::Role::operand && !property && !random;
}

/// What `import *` takes: no private names, and no ops that live in a module of their own.
void list_public(nb::module_& m) {
  nb::list names;
  for (nb::handle name : nb::steal<nb::list>(PyObject_Dir(m.ptr()))) {
    std::string_view text = PyUnicode_AsUTF8(name.ptr());
    const OpDef* op = find_op(text);
    if (!text.starts_with('_') && (!op || op->module.empty())) names.append(name);
  }
  m.attr("__all__") = names;
}

}  // namespace

std::vector<FieldSlot> make_slots(std::string_view owner, const AttrKind& kind, FieldList& fields) {
  AttrBuffer attrs(kind);
  kind.list(attrs.data, fields);
  std::vector<FieldSlot> made;
  for (const Field& f : fields.items) {
    auto offset = [&](const void* p) { return static_cast<const char*>(p) - attrs.data; };
    made.push_back({owner, f.name, f.kind, f.choices, static_cast<size_t>(offset(f.at)),
                    f.set ? offset(f.set) : -1});
  }
  return made;
}

CallSpec make_spec(const OpDef& op) {
  CallSpec spec;
  spec.op = &op;
  FieldList fields;
  spec.fields = make_slots(user_name(op), *op.attrs, fields);
  auto add_fields = [&](int after) {
    for (size_t i = 0; i < fields.items.size(); ++i) {
      const Field& f = fields.items[i];
      if (operands_before(f.kind, f.required, op.args.size()) == after)
        spec.params.push_back(field_param(f, static_cast<int>(i)));
    }
  };
  for (int i = 0; i < op.args.size(); ++i) {
    const ArgDef& arg = op.args[i];
    add_fields(i);
    nb::object name = nb::steal(text_object(arg.name));
    PyObject* interned = name.release().ptr();
    PyUnicode_InternInPlace(&interned);
    auto role = arg.list ? CallParam::Role::list : CallParam::Role::operand;
    spec.params.push_back({role, interned, arg.name, !arg.optional, i});
    spec.has_list |= arg.list;
  }
  add_fields(op.args.size());
  if (op.results.size() > 1) spec.result = make_result_type(op);
  return spec;
}

const CallSpec& spec_of(const OpDef& op) {
  auto found = std::ranges::find(all_specs(), &op, &CallSpec::op);
  // Of those that are not called by name, specs are made when calls in PyTorch's way need them.
  return found == all_specs().end() ? all_specs().emplace_back(make_spec(op)) : *found;
}

nb::object describe_params(const CallSpec& spec) {
  AttrBuffer attrs(*spec.op->attrs);
  FieldList fields;
  spec.op->attrs->list(attrs.data, fields);
  nb::list rows;
  for (const CallParam& p : spec.params) {
    nb::object value = nb::none();
    if (p.role == CallParam::Role::field && !p.required)
      value = field_object(fields.items[static_cast<size_t>(p.place)]);
    rows.append(nb::make_tuple(nb::borrow(p.name), p.required, value));
  }
  return rows;
}

Tensor call_op(std::string_view name, std::initializer_list<Tensor> in) {
  const OpDef* op = find_op(name);
  invariant(op != nullptr, "no op `{}`", name);
  AttrBuffer attrs(*op->attrs);
  return call_with(*op, Tensors(in), attrs.data)[0];
}

void bind_ops(nb::module_& m) {
  function_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&function_spec));
  if (!function_type) throw nb::python_error();
  m.attr("Op") = nb::borrow(reinterpret_cast<PyObject*>(function_type));
  nb::object tensor = nb::borrow(reinterpret_cast<PyObject*>(tensor_type));
  for (const OpDef* op : surface_ops()) {
    const CallSpec& spec = all_specs().emplace_back(make_spec(*op));
    nb::object function = make_function(spec);
    auto add = [&](std::string_view name) {
      nb::str text(name.data(), name.size());
      if (PyObject_SetAttr(m.ptr(), text.ptr(), function.ptr()) != 0) throw nb::python_error();
      // What the class defines by hand stays.
      if (!is_method(spec) || PyObject_HasAttr(tensor.ptr(), text.ptr())) return;
      if (PyObject_SetAttr(tensor.ptr(), text.ptr(), function.ptr()) != 0) throw nb::python_error();
    };
    add(op->name);
    for (std::string_view alias : op->rules->aliases) add(alias);
  }
  list_public(m);
}

}  // namespace tn::python
