// tn.compile: the callable that finds the trace for its arguments and runs it, all in C++.
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cstddef>

#include "base/error.h"
#include "compiled/function_traces.h"
#include "eval/run_together.h"
#include "functions/plan_settings.h"
#include "observe/stage_text.h"
#include "trees/live_trees.h"

namespace tn::python {
namespace {

/// The arguments of a call under way.
class Call {
 public:
  Call(FunctionTraces& traces, nb::handle f, PyObject* const* args, size_t positional,
       PyObject* keywords)
      : traces_(traces), lock_(traces.settings.state), args_(std::move(traces.spare)) {
    if (!args_) args_ = std::make_unique<CallArguments>();
    const FunctionSettings& settings = traces.settings;
    args_->read(f, args, positional, keywords, settings.constants);
    if (settings.state.inputs.is_valid()) args_->read_state(settings.state.inputs.ptr());
  }
  ~Call() {
    args_->clear();
    traces_.spare = std::move(args_);
  }
  Call(const Call&) = delete;
  CallArguments& operator*() { return *args_; }

 private:
  FunctionTraces& traces_;
  StateLock lock_;
  std::unique_ptr<CallArguments> args_;
};

struct CompiledObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject *attributes, *weak_references;
  PyObject *function, *owner;  // of the traces: functions compiled alike share them
  PyObject* options;           // that it was compiled with
  FunctionTraces* traces;
};

PyTypeObject* compiled_type;

CompiledObject& object_of(PyObject* self) { return *reinterpret_cast<CompiledObject*>(self); }
FunctionTraces& traces_of(PyObject* self) { return *object_of(self).traces; }

PyObject* vectorcall(PyObject* self, PyObject* const* args, size_t flags, PyObject* keywords) {
  return for_user<PyObject*>(nullptr, [&] {
    PyObject* function = object_of(self).function;
    FunctionTraces& traces = traces_of(self);
    if (is_compile_disabled()) {
      OwnPlaces own;
      auto result = nb::steal<nb::object>(PyObject_Vectorcall(function, args, flags, keywords));
      if (result.is_valid()) evaluate_together(tensors_in(result.ptr()));
      return result.release().ptr();
    }
    Call call(traces, function, args, static_cast<size_t>(PyVectorcall_NARGS(flags)), keywords);
    FunctionTraces::Entry entry = traces.entry(*call);
    return entry->run(*call, traces.settings.state).release().ptr();
  });
}

/// The trace for the arguments of a call, or the latest when none are given.
FunctionTraces::Entry entry_for(PyObject* self, PyObject* const* args, Py_ssize_t count,
                                PyObject* keywords, const char* method) {
  FunctionTraces& traces = traces_of(self);
  if (count == 0 && !keywords) {
    if (FunctionTraces::Entry latest = traces.table().latest()) return latest;
    fail(Hint{format("call it first, or give arguments: f.{}(..., x)", method)},
         "{}: the function has not been traced yet", method);
  }
  Call call(traces, object_of(self).function, args, static_cast<size_t>(count), keywords);
  return traces.entry(*call);
}

PyObject* show(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  return for_user<PyObject*>(nullptr, [&] {
    if (count == 0 || !PyUnicode_Check(args[0]))
      fail(Fault::type, Hint{"f.show(\"graph\", x)"}, "show: the first argument names a stage");
    std::string stage = nb::cast<std::string>(nb::handle(args[0]));
    auto entry = entry_for(self, args + 1, count - 1, keywords, "show");
    return nb::cast(entry->compiled->show(stage)).release().ptr();
  });
}

PyObject* source(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  return for_user<PyObject*>(nullptr, [&] {
    std::string target =
        count && PyUnicode_Check(args[0]) ? nb::cast<std::string>(nb::handle(args[0])) : "";
    if (!is_source_target(target))
      fail(Hint{"f.source(\"numpy\", x)"},
           "source: the first argument names a target: numpy, torch or jax");
    auto entry = entry_for(self, args + 1, count - 1, keywords, "source");
    nb::handle f(object_of(self).function);
    CallKey::Names arguments = names_of_arguments(f, entry->key.positional), inputs;
    for (size_t leaf : entry->key.at) inputs.push_back(entry->key.path(leaf, arguments));
    std::string name = nb::hasattr(f, "__name__") ? nb::cast<std::string>(f.attr("__name__")) : "f";
    return nb::cast(entry->compiled->source(target, name, inputs)).release().ptr();
  });
}

PyObject* memory(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  return for_user<PyObject*>(nullptr, [&] {
    auto entry = entry_for(self, args, count, keywords, "memory");
    return nb::cast(entry->compiled->memory()).release().ptr();
  });
}

PyObject* stats(PyObject* self, PyObject*) {
  return guarded<PyObject*>(
      nullptr, [&] { return nb::cast(traces_of(self).table().stats()).release().ptr(); });
}

PyObject* why_recompiled(PyObject* self, PyObject*) {
  return guarded<PyObject*>(
      nullptr, [&] { return nb::cast(traces_of(self).table().why_recompiled()).release().ptr(); });
}

PyObject* explain(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  return for_user<PyObject*>(nullptr, [&] {
    FunctionTraces& traces = traces_of(self);
    Call call(traces, object_of(self).function, args, static_cast<size_t>(count), keywords);
    FunctionTraces::Entry entry = traces.entry(*call);
    Explanation made = entry->compiled->explain((*call).sizes);
    add_traces(made, traces.table().log());
    return nb::cast(std::move(made)).release().ptr();
  });
}

/// A function of tenon.copying, given what it is about.
PyObject* ask_copying(PyObject* self, const char* question, PyObject* memo) {
  return guarded<PyObject*>(nullptr, [&] {
    nb::object answer = nb::module_::import_("tenon.copying").attr(question);
    const CompiledObject& object = object_of(self);
    nb::handle compiled(self), function(object.function), options(object.options);
    nb::object made = memo ? answer(compiled, function, options, nb::handle(memo))
                           : answer(compiled, function, options);
    return made.release().ptr();
  });
}

PyObject* reduce(PyObject* self, PyObject*) { return ask_copying(self, "reduced", nullptr); }
PyObject* deep_copy(PyObject* self, PyObject* memo) { return ask_copying(self, "copied", memo); }
PyObject* shallow_copy(PyObject* self, PyObject*) { return Py_NewRef(self); }

PyObject* bind_method(PyObject* self, PyObject* object, PyObject*) {
  if (!object || object == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, object);
}

PyObject* repr(PyObject* self) {
  return guarded<PyObject*>(nullptr, [&] {
    std::string inner = nb::repr(nb::handle(object_of(self).function)).c_str();
    return PyUnicode_FromString(format("<compiled {}>", inner).c_str());
  });
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  CompiledObject& object = object_of(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(object.attributes);
  Py_VISIT(object.function);
  Py_VISIT(object.owner);
  Py_VISIT(object.options);
  return 0;
}

/// What calls need stays: they may come after it, from what is cleared later.
int clear(PyObject* self) {
  Py_CLEAR(object_of(self).attributes);
  return 0;
}

void dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  CompiledObject& object = object_of(self);
  if (object.weak_references) PyObject_ClearWeakRefs(self);
  Py_CLEAR(object.attributes);
  Py_CLEAR(object.function);
  Py_CLEAR(object.owner);
  Py_CLEAR(object.options);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

using Method = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);

PyCFunction method(Method f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

PyMethodDef methods[] = {
    {"show", method(show), METH_FASTCALL | METH_KEYWORDS,
     "show(stage, *args, **kwargs)\n\nA stage of the compilation for these arguments (without any: "
     "of the latest trace) as text:\n\"graph\", \"optimized\", \"loops\", \"kernels\", \"plan\", "
     "\"memory\", \"decisions\" or \"sharding\"."},
    {"source", method(source), METH_FASTCALL | METH_KEYWORDS,
     "source(target, *args, **kwargs)\n\nThe function for these arguments (without any: the latest "
     "trace) as one Python file\nthat needs no Tenon: \"numpy\", \"torch\" or \"jax\". What the "
     "function takes from outside\nis a further argument."},
    {"memory", method(memory), METH_FASTCALL | METH_KEYWORDS,
     "memory(*args, **kwargs)\n\nWhat a run with these arguments (without any: the latest trace) "
     "needs besides them, as a MemoryReport."},
    {"stats", stats, METH_NOARGS,
     "stats()\n\nWhat the calls so far did: `traces`, `hits`, `graph_compiles`, "
     "`kernel_compiles`,\n`replans`, and `traces_by_reason`."},
    {"why_recompiled", why_recompiled, METH_NOARGS,
     "why_recompiled()\n\nWhy the function was traced, each time, as text: what differed from the "
     "trace that\ncame nearest, and the call."},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {"__copy__", shallow_copy, METH_NOARGS, nullptr},
    {"__deepcopy__", deep_copy, METH_O, nullptr},
    {"_explain", method(explain), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef properties[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(CompiledObject, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(CompiledObject, attributes), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(CompiledObject, weak_references), READONLY,
     nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                       {Py_tp_descr_get, reinterpret_cast<void*>(bind_method)},
                       {Py_tp_repr, reinterpret_cast<void*>(repr)},
                       {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(clear)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
                       {Py_tp_methods, methods},
                       {Py_tp_getset, properties},
                       {Py_tp_members, members},
                       {0, nullptr}};
PyType_Spec compiled_spec = {"tenon.CompiledFunction", sizeof(CompiledObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                                 Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                             slots};

/// `state` is a tree of what can be changed, or None.
nb::object checked_state(nb::object tree, const char* name) {
  using Kind = TreeType::Kind;
  if (tree.is_none()) return {};
  Kind kind = live_type(tree.ptr())->kind;
  if (kind == Kind::leaf)
    fail(Fault::type, Hint{format("{}=vars(x), the dict of its attributes", name)},
         "compile: {} must be a container, or several in a list, not a {}", name,
         type_name(tree.ptr()));
  return tree;
}

FunctionTraces* make_traces(nb::object inputs, nb::object outputs, bool shapeless,
                            std::vector<size_t> static_positions, nb::handle static_names,
                            std::vector<size_t> donated, int level, const PlanSettings& plan,
                            RunDemands demands) {
  UserCall place;
  check_runs_here(plan);
  FunctionSettings settings{
      .donated = std::move(donated), .shapeless = shapeless, .demands = demands};
  settings.constants.positions = std::move(static_positions);
  for (nb::handle name : static_names) settings.constants.names.push_back(nb::borrow(name));
  settings.state = {checked_state(inputs, "inputs"), checked_state(outputs, "outputs")};
  settings.options = options_of(level, plan);
  return new FunctionTraces(std::move(settings));
}

nb::object compile(nb::object f, nb::object traces, nb::dict options) {
  FunctionTraces* inner = nb::cast<FunctionTraces*>(traces);
  auto* made = PyObject_GC_New(CompiledObject, compiled_type);
  if (!made) throw nb::python_error();
  made->vectorcall = vectorcall;
  made->attributes = made->weak_references = nullptr;
  made->function = f.release().ptr();
  made->owner = traces.release().ptr();
  made->options = options.release().ptr();
  made->traces = inner;
  PyObject_GC_Track(reinterpret_cast<PyObject*>(made));
  return nb::steal(reinterpret_cast<PyObject*>(made));
}

int traverse_traces(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return nb::inst_ready(self) ? nb::inst_ptr<FunctionTraces>(self)->traverse(visit, arg) : 0;
}

int clear_traces(PyObject* self) {
  nb::inst_ptr<FunctionTraces>(self)->clear();
  return 0;
}

/// Gives an object a subclass of its class, or the class back: also where Python refuses it, since
/// the class is one of the language (`type`). Both have the same layout.
void set_class(nb::handle object, nb::handle cls) {
  auto* now = reinterpret_cast<PyTypeObject*>(cls.ptr());
  PyTypeObject* before = Py_TYPE(object.ptr());
  invariant(now->tp_basicsize == before->tp_basicsize && now->tp_itemsize == before->tp_itemsize,
            "the classes {} and {} differ in layout", before->tp_name, now->tp_name);
  if (PyType_HasFeature(now, Py_TPFLAGS_HEAPTYPE)) Py_INCREF(now);
  Py_SET_TYPE(object.ptr(), now);
  if (PyType_HasFeature(before, Py_TPFLAGS_HEAPTYPE)) Py_DECREF(before);
  if (PyType_Check(object.ptr())) PyType_Modified(reinterpret_cast<PyTypeObject*>(object.ptr()));
}

PyType_Slot traces_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse_traces)},
                              {Py_tp_clear, reinterpret_cast<void*>(clear_traces)},
                              {0, nullptr}};

}  // namespace

static void bind_memory_report(nb::module_& m) {
  using Live = MemoryReport::Live;
  nb::class_<Live>(m, "LiveBuffer", "A buffer at the step of a run that needs most.")
      .def_ro("bytes", &Live::bytes)
      .def_ro("name", &Live::name, "The step that made it.")
      .def_ro("output", &Live::output, "Whether it is a result.")
      .def_prop_ro("place", [](const Live& live) { return to_text(live.loc); });
  using Report = MemoryReport;
  nb::class_<Report>(m, "MemoryReport",
                     "The memory that a run needs, in bytes, without its arguments.")
      .def_ro("peak", &Report::peak, "The arena and the results.")
      .def_ro("lower_bound", &Report::lower_bound, "No placement can do with less.")
      .def_ro("planning", &Report::planning, "The strategy of memory planning: \"best_fit\".")
      .def_ro("is_least", &Report::is_least, "It is known that no placement needs less.")
      .def_ro("arena", &Report::arena)
      .def_ro("outputs", &Report::outputs)
      .def_ro("workspace", &Report::workspace, "The largest of a step, in the arena.")
      .def_ro("constants", &Report::constants, "Kept between runs.")
      .def_ro("donated", &Report::donated, "Memory of arguments that is used.")
      .def_ro("step", &Report::step, "The step that needs most memory; -1: nothing runs.")
      .def_ro("step_name", &Report::step_name)
      .def_prop_ro("step_place", [](const Report& report) { return to_text(report.step_loc); })
      .def_ro("live", &Report::live, "The ten largest buffers then.")
      .def_ro("needed", &Report::needed, "At every step.")
      .def("__repr__", [](const Report& report) {
        std::string text = to_text(report);
        text.resize(text.find_last_not_of('\n') + 1);
        return text;
      });
}

static void bind_stats(nb::module_& m) {
  nb::class_<CallStats>(m, "CallStats", "Statistics of the calls of a compiled function.")
      .def_ro("traces", &CallStats::traces, "Calls that ran the function itself.")
      .def_ro("hits", &CallStats::hits, "Calls that found a trace.")
      .def_ro("graph_compiles", &CallStats::graph_compiles)
      .def_ro("kernel_compiles", &CallStats::kernel_compiles)
      .def_ro("replans", &CallStats::replans, "Plans for new sizes, with nothing compiled.")
      .def_ro("traces_by_reason", &CallStats::traces_by_reason)
      .def("__repr__", [](const CallStats& s) { return to_text(s); });
}

void bind_compile(nb::module_& m) {
  bind_memory_report(m);
  bind_stats(m);
  compiled_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&compiled_spec));
  if (!compiled_type) throw nb::python_error();
  m.attr("CompiledFunction") = nb::borrow(reinterpret_cast<PyObject*>(compiled_type));
  nb::class_<RunDemands>(m, "_RunDemands")
      .def(nb::init<int64_t, bool, double, bool, bool, bool>(), nb::arg("memory_limit"),
           nb::arg("check"), nb::arg("timeout"), nb::arg("timeout_fails"), nb::arg("keeps_lock"),
           nb::arg("tunes"));
  using Names = std::vector<std::string>;
  nb::class_<PlanSettings>(m, "_PlanSettings")
      .def(nb::init<Names, Names, std::string, std::string, Names>(), nb::arg("off"), nb::arg("on"),
           nb::arg("memory_planning"), nb::arg("optimize_for"), nb::arg("targets"));
  nb::class_<FunctionTraces>(m, "_FunctionTraces", nb::type_slots(traces_slots))
      .def(nb::new_(&make_traces), nb::arg("inputs").none(), nb::arg("outputs").none(),
           nb::arg("shapeless"), nb::arg("static_argnums"), nb::arg("static_argnames"),
           nb::arg("donate_argnums"), nb::arg("optimization_level"), nb::arg("plan"),
           nb::arg("demands"));
  m.def("_compile", compile, nb::arg("f"), nb::arg("traces"), nb::arg("options"));
  m.def("_set_class", set_class, nb::arg("object"), nb::arg("cls"));
  m.def("_disable_compile", &tn::disable_compile, nb::arg("disabled"));
}

}  // namespace tn::python
