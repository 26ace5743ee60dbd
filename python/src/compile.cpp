// tn.compile: the callable that finds the trace for its arguments and runs it, all in C++.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>

#include "base/error.h"
#include "call_arguments.h"
#include "frontend/compiled.h"
#include "ir/number.h"
#include "tensor_tree.h"

namespace tn::python {
namespace {

constexpr size_t kMostTraces = 256;  // of one function; the oldest go first

using Places = std::vector<size_t>;

/// A trace and the tree of results it made.
struct Entry {
  Signature signature;
  Places given = {};     // numbers among the arguments that may have any value
  Places words = {};     // where the signature has their values
  Places constant = {};  // numbers whose value `f` asks for
  std::shared_ptr<const Compiled> compiled = {};
  std::optional<TensorTree> out = {};
  Places numbers = {};  // among the results

  bool serves(const CallArguments& args) const {
    const Words &a = signature.words, &b = args.signature.words;
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i)
      if (a[i] != b[i] && !std::ranges::count(words, i)) return false;
    return signature.same_rest(args.signature);
  }
  /// Which numbers to give to a trace for `args` so that it serves both calls; nothing where they
  /// differ in more.
  std::optional<Places> numbers_to_give(const CallArguments& args) const {
    const Words &a = signature.words, &b = args.signature.words;
    if (a.size() != b.size()) return {};
    Places varied = given;
    size_t next = 0;  // of the numbers
    for (size_t i = 0; i < a.size(); ++i) {
      bool number = next < args.numbers.size() && args.numbers[next].word == i;
      if (number) ++next;
      if (a[i] == b[i]) continue;
      if (!number) return {};
      size_t n = next - 1;
      if (!std::ranges::count(constant, n) && !std::ranges::count(given, n)) varied.push_back(n);
    }
    if (!signature.same_rest(args.signature)) return {};
    return varied;
  }

  nb::object run(const CallArguments& args) const {
    Tensors made =
        given.empty() ? (*compiled)(args.tensors) : (*compiled)(args.with_numbers(given));
    if (numbers.empty()) {
      bool single = out->structure.nodes().size() == 1 && made.size() == 1;
      return single ? wrapped(std::move(made[0])) : out->with(made);
    }
    Leaves leaves = out->leaves;
    for (size_t k = 0; k < made.size(); ++k) {
      bool number = std::ranges::count(numbers, k);
      leaves[out->at[k]] = number ? number_object(made[k]) : wrapped(std::move(made[k]));
    }
    return out->structure.build(leaves);
  }
  /// Notes which results are numbers, and lets go of the tensors of the trace.
  void forget_tensors() {
    for (size_t k = 0; k < out->at.size(); ++k) {
      if (is_given_number(out->tensors[k])) numbers.push_back(k);
      out->leaves[out->at[k]] = nb::none();
    }
    out->tensors.clear();
  }

 private:
  using Words = std::vector<uint64_t>;

  static nb::object number_object(const Tensor& t) {
    if (t.node()->traced) return wrapped(as_number(t));
    evaluate(t);
    return element_object(t.dtype(), t.data());
  }
};

/// Python's lock guards the list of entries.
struct CompiledState {
  nb::object f;
  StaticArguments constants;
  CompileOptions options;
  std::vector<std::shared_ptr<const Entry>> entries = {};

  std::shared_ptr<const Entry> find(const CallArguments& args) const {
    for (size_t i = entries.size(); i-- > 0;) {
      std::shared_ptr<const Entry> entry = at(i);
      if (entry && entry->serves(args)) return entry;
    }
    return nullptr;
  }
  /// Comparing may run Python code, and with it other threads that change the list.
  std::shared_ptr<const Entry> at(size_t i) const {
    return i < entries.size() ? entries[i] : nullptr;
  }

  /// Numbers are constants of a trace until they vary. Then they are given to the next one, unless
  /// that fails, as where `f` branches on them: then they stay constants.
  std::shared_ptr<const Entry> trace(const CallArguments& args) const {
    for (size_t i = entries.size(); i-- > 0;) {
      std::shared_ptr<const Entry> like = at(i);
      std::optional<Places> given = like ? like->numbers_to_give(args) : std::nullopt;
      if (!given) continue;
      if (given->empty()) return trace(args, {}, like->constant);
      try {
        return trace(args, *given, like->constant);
      } catch (const nb::python_error& error) {
        if (!error.matches(PyExc_Exception)) throw;  // the user's interrupt
      } catch (const UserError&) {
      }
      Places constant = like->constant;
      constant.insert(constant.end(), given->begin(), given->end());
      return trace(args, {}, std::move(constant));
    }
    return trace(args, {}, {});
  }

  std::shared_ptr<const Entry> trace(const CallArguments& args, Places given,
                                     Places constant) const {
    auto entry = std::make_shared<Entry>();
    entry->signature = args.signature;
    entry->given = std::move(given), entry->constant = std::move(constant);
    for (size_t n : entry->given) entry->words.push_back(args.numbers[n].word);
    auto run = [&](const Tensors& params) {
      OwnPlaces own;
      nb::object result = args.call(f.ptr(), params, entry->given);
      entry->out.emplace(result.ptr(), Numbers::stay_known);
      return entry->out->tensors;
    };
    Tensors like = args.with_numbers(entry->given);
    std::vector<TypeRef> types;
    for (const Tensor& t : like) types.push_back(type_of(t));
    entry->compiled = std::make_shared<const Compiled>(run, like, exact_pattern(types), options);
    entry->forget_tensors();
    return entry;
  }

  std::shared_ptr<const Entry> entry(const CallArguments& args) {
    if (auto known = find(args)) return known;
    std::shared_ptr<const Entry> made = trace(args);
    if (made->compiled->is_bound()) return made;
    if (auto known = find(args)) return known;  // by another thread meanwhile
    if (entries.size() == kMostTraces) entries.erase(entries.begin());
    entries.push_back(made);
    return made;
  }
};

struct CompiledObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject *attributes, *weak_references;
  CompiledState* state;
};

PyTypeObject* compiled_type;

CompiledState& state_of(PyObject* self) { return *reinterpret_cast<CompiledObject*>(self)->state; }

PyObject* vectorcall(PyObject* self, PyObject* const* args, size_t flags, PyObject* keywords) {
  return guarded<PyObject*>(nullptr, [&] {
    UserCall place;
    CompiledState& state = state_of(self);
    CallArguments call(args, static_cast<size_t>(PyVectorcall_NARGS(flags)), keywords,
                       state.constants);
    return state.entry(call)->run(call).release().ptr();
  });
}

/// The trace for the arguments of a call, or the latest when none are given.
std::shared_ptr<const Entry> entry_for(PyObject* self, PyObject* const* args, Py_ssize_t count,
                                       PyObject* keywords, const char* method) {
  CompiledState& state = state_of(self);
  if (count == 0 && !keywords) {
    if (!state.entries.empty()) return state.entries.back();
    fail(Hint{format("call it first, or give arguments: f.{}(..., x)", method)},
         "{}: the function has not been traced yet", method);
  }
  return state.entry(CallArguments(args, static_cast<size_t>(count), keywords, state.constants));
}

PyObject* show(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  return guarded<PyObject*>(nullptr, [&] {
    UserCall place;
    if (count == 0 || !PyUnicode_Check(args[0]))
      fail(Fault::type, Hint{"f.show(\"graph\", x)"}, "show: the first argument names a stage");
    std::string stage = nb::cast<std::string>(nb::handle(args[0]));
    auto entry = entry_for(self, args + 1, count - 1, keywords, "show");
    return nb::cast(entry->compiled->show(stage)).release().ptr();
  });
}

PyObject* memory(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  return guarded<PyObject*>(nullptr, [&] {
    UserCall place;
    auto entry = entry_for(self, args, count, keywords, "memory");
    return nb::cast(entry->compiled->memory()).release().ptr();
  });
}

PyObject* bind_method(PyObject* self, PyObject* object, PyObject*) {
  if (!object || object == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, object);
}

PyObject* repr(PyObject* self) {
  return guarded<PyObject*>(nullptr, [&] {
    std::string inner = nb::repr(state_of(self).f).c_str();
    return PyUnicode_FromString(format("<compiled {}>", inner).c_str());
  });
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  auto* object = reinterpret_cast<CompiledObject*>(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(object->attributes);
  Py_VISIT(object->state->f.ptr());
  for (const auto& entry : object->state->entries) {
    if (entry.use_count() > 1) continue;  // also held by a call under way
    for (const nb::object& o : entry->signature.rest) Py_VISIT(o.ptr());
    for (const nb::object& o : entry->out->leaves) Py_VISIT(o.ptr());
  }
  return 0;
}

int clear(PyObject* self) {
  auto* object = reinterpret_cast<CompiledObject*>(self);
  Py_CLEAR(object->attributes);
  object->state->entries.clear();
  object->state->f = nb::none();
  return 0;
}

void dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  auto* object = reinterpret_cast<CompiledObject*>(self);
  if (object->weak_references) PyObject_ClearWeakRefs(self);
  Py_CLEAR(object->attributes);
  delete object->state;
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
     "\"memory\" or \"decisions\"."},
    {"memory", method(memory), METH_FASTCALL | METH_KEYWORDS,
     "memory(*args, **kwargs)\n\nWhat a run with these arguments (without any: the latest trace) "
     "needs besides them, as a MemoryReport."},
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

nb::object compile(nb::object f, std::vector<size_t> positions, nb::handle names, int level,
                   std::vector<std::string> off) {
  UserCall place;
  CompiledState state{std::move(f), {std::move(positions), {}}, {.effort = effort_of(level)}};
  state.options.off = std::move(off);
  for (nb::handle name : names) state.constants.names.push_back(nb::borrow(name));
  auto* made = PyObject_GC_New(CompiledObject, compiled_type);
  if (!made) throw nb::python_error();
  made->vectorcall = vectorcall;
  made->attributes = made->weak_references = nullptr;
  made->state = new CompiledState(std::move(state));
  PyObject_GC_Track(reinterpret_cast<PyObject*>(made));
  return nb::steal(reinterpret_cast<PyObject*>(made));
}

}  // namespace

static void bind_memory_report(nb::module_& m) {
  using Live = MemoryReport::Live;
  nb::class_<Live>(m, "LiveBuffer", "A buffer at the step of a run that needs most.")
      .def_ro("bytes", &Live::bytes)
      .def_ro("name", &Live::name, "The step that made it.")
      .def_ro("output", &Live::output, "Whether it is a result.")
      .def_prop_ro("place", [](const Live& live) { return to_text(live.loc); });
  using Report = MemoryReport;
  nb::class_<Report>(m, "MemoryReport", "What a run needs, in bytes; arguments do not count.")
      .def_ro("peak", &Report::peak, "The arena and the results.")
      .def_ro("lower_bound", &Report::lower_bound, "No placement can do with less.")
      .def_ro("arena", &Report::arena)
      .def_ro("outputs", &Report::outputs)
      .def_ro("workspace", &Report::workspace, "The largest of a step, in the arena.")
      .def_ro("constants", &Report::constants, "Kept between runs.")
      .def_ro("donated", &Report::donated, "Memory of arguments that is used.")
      .def_ro("step", &Report::step, "Where most is needed; -1: nothing runs.")
      .def_ro("step_name", &Report::step_name)
      .def_prop_ro("step_place", [](const Report& report) { return to_text(report.step_loc); })
      .def_ro("live", &Report::live, "The ten largest buffers then.")
      .def("__repr__", [](const Report& report) {
        std::string text = to_text(report);
        text.resize(text.find_last_not_of('\n') + 1);
        return text;
      });
}

void bind_compile(nb::module_& m) {
  bind_memory_report(m);
  compiled_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&compiled_spec));
  if (!compiled_type) throw nb::python_error();
  m.attr("CompiledFunction") = nb::borrow(reinterpret_cast<PyObject*>(compiled_type));
  m.def("_compile", compile, nb::arg("f"), nb::arg("static_argnums"), nb::arg("static_argnames"),
        nb::arg("optimization_level"), nb::arg("off"));
}

}  // namespace tn::python
