#include "compiled/function_traces.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <utility>

#include "base/debug_log.h"
#include "base/error.h"
#include "ir/number.h"
#include "ir/trace.h"
#include "ir/watch.h"
#include "transforms/backward.h"

namespace tn::python {

namespace {

nb::object number_object(const Tensor& t) {
  if (t.node()->traced) return wrapped(as_number(t));
  evaluate(t);
  return element_object(t.dtype(), t.data());
}

std::string name_of_function(nb::handle f) {
  return nb::cast<std::string>(nb::str(nb::getattr(f, "__name__", nb::repr(f))));
}

/// "step (train.py:31)".
std::string place_of_function(nb::handle f) {
  nb::object code = nb::getattr(f, "__code__", nb::none());
  if (code.is_none()) return name_of_function(f);
  return format("{} ({}:{})", name_of_function(f), nb::cast<std::string>(code.attr("co_filename")),
                nb::cast<int>(code.attr("co_firstlineno")));
}

/// Refuses what would hide a tensor of the trace: later calls would return it as it is.
void check_result(const TensorTree& result, nb::handle f) {
  for (size_t i = 0; i < result.leaves.size(); ++i) {
    PyObject* o = result.leaves[i].ptr();
    if (is_tensor(o)) continue;
    const PyAsyncMethods* async = Py_TYPE(o)->tp_as_async;
    bool hides = PyIter_Check(o) || PyAnySet_Check(o) || (async && async->am_await);
    nb::object inside = nb::getattr(o, "__dict__", nb::none());
    if (PyDict_CheckExact(inside.ptr()))
      for (auto [name, value] : nb::borrow<nb::dict>(inside))
        hides = hides || is_tensor(value.ptr());
    if (!hides) continue;
    std::string path = result.structure.path(i);
    fail(Fault::type, Hint{"return lists, tuples, dicts and dataclasses, or see tn.tree.register"},
         "compile: the result{}{} is a {}, which is no tree of tensors, of {}",
         path.empty() ? "" : " at ", path, type_name(o), place_of_function(f));
  }
}

/// Where the function asks for the type or identity of what may be a number, or nothing: a number
/// that is open cannot answer as a plain one does. `objects`: those that it reads.
std::string question_of_type(nb::handle f, const nb::list& objects) {
  nb::object found = nb::module_::import_("tenon.questions_of_type").attr("find")(f, objects);
  return found.is_none() ? "" : nb::cast<std::string>(found);
}

/// Whether other code holds a container of the result, and then sees what later calls return.
bool is_shared(PyObject* result) {
  bool list = PyList_CheckExact(result), dict = PyDict_CheckExact(result);
  if (!list && !dict && !PyTuple_CheckExact(result)) return false;
  if ((list || dict) && Py_REFCNT(result) > 1) return true;
  nb::object values = dict ? nb::object(nb::borrow<nb::dict>(result).values()) : nb::borrow(result);
  return std::any_of(values.begin(), values.end(), [](nb::handle v) { return is_shared(v.ptr()); });
}

/// Nothing outside holds the parameters of a trace, or what was made of them, when it is over.
void warn_of_leaks(const Tensors& params, nb::handle f) {
  auto held = [](const Tensor& t) { return t.node()->refs.load() > 1; };
  if (std::ranges::none_of(params, held)) return;
  nb::module_::import_("gc").attr("collect")();  // unreachable objects are no leak
  if (std::ranges::none_of(params, held)) return;
  warn(format(
      "compile: {} stores traced tensors in an object that is not in outputs=; later calls do not "
      "update it, and reading it fails",
      place_of_function(f)));
}

/// An argument that the function assigns to parts of is a tensor of the trace: that of the caller
/// keeps its value, as it would not if the function were called itself.
void warn_of_assigned_arguments(const CallArguments& args, const Tensors& params,
                                const Leaves& leaves, const CallKey::Names& names) {
  for (size_t k = 0; k < args.key.at.size() && args.is_argument(k); ++k) {
    const Tensor* now = tensor_in(leaves[args.key.at[k]].ptr());
    if (!now || now->node() == params[k].node() || is_variable(*args.tensors[k].node())) continue;
    warn(format(
        "compile: {} assigns to parts of {}, and the caller's tensor keeps its value: return the "
        "new one, or assign to a copy",
        place_of_function(args.function), args.key.path(args.key.at[k], names)));
  }
}

/// What the function assigns to modules that are not its state, and is not returned: taken out of
/// them again, with a warning unless it failed.
class ChangesOfModules {
 public:
  explicit ChangesOfModules(nb::handle f)
      : noted_(nb::module_::import_("tenon.module_changes")
                   .attr("ChangesByCompiled")(place_of_function(f))) {}
  ~ChangesOfModules() {
    if (!noted_.is_valid()) return;
    nb::error_scope keep;
    PyErr_Clear();
    nb::steal(PyObject_CallMethod(noted_.ptr(), "undo", nullptr));
    PyErr_Clear();
  }
  ChangesOfModules(const ChangesOfModules&) = delete;
  void end(const Tensors& results) {
    nb::list list;
    for (const Tensor& t : results) list.append(wrapped(Tensor(t)));
    std::exchange(noted_, {}).attr("end")(list);
  }

 private:
  nb::object noted_;
};

/// What went wrong and where, in one line.
std::string one_line(std::string text) {
  text.resize(std::min(text.find("\n  hint:"), text.size()));
  for (size_t at; (at = text.find("\n ")) != std::string::npos;) text.erase(at, 2);
  return text;
}

/// Does what may be done again until it is done: the handler of a signal, such as that of Ctrl-C,
/// raises in whatever Python code runs, and then half of it is missing. Its error is met
/// afterwards.
template <class F>
void to_the_end(F&& assign) {
  constexpr int kMost = 10;  // an error that comes each time is of the containers
  std::exception_ptr error;
  for (int i = 0; i < kMost; ++i) {
    try {
      assign();
      break;
    } catch (const nb::python_error&) {
      if (!error) error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace

CallKey::Names names_of_arguments(nb::handle f, size_t count) {
  CallKey::Names names;
  nb::object ask = nb::module_::import_("tenon.transforms").attr("_argument_names");
  for (nb::handle name : ask(f, nb::none(), count)) names.push_back(nb::cast<std::string>(name));
  return names;
}

bool TraceEntry::serves(CallArguments& args) const {
  return key.is_like(args.key) && key.takes_numbers_of(args.key) &&
         compiled->takes(args.key.types, args.sizes) && objects.hold(args.key, args.opened);
}

nb::object TraceEntry::run(CallArguments& args, const StateTrees& trees) const {
  args.append_numbers(given);
  if (!args.opened.empty())
    args.tensors.insert(args.tensors.end(), args.opened.begin(), args.opened.end());
  std::optional<GivenAway> away;
  if (!donated.empty() && !compiled->keeps(args.tensors)) {
    evaluate(args.tensors);  // may wait for other threads, which may need donated tensors
    away.emplace(donated, args);
  }
  bool blocked = compiled->loses_leaves(args.tensors);
  Tensors made = (*compiled)(args.tensors, args.sizes);
  if (away) away->replace_by(made);
  away.reset();
  std::span<Tensor> results = std::span(made).first(out->tree.at.size());
  if (blocked) mark_blocked(results);  // state goes on without what it came from
  size_t leaves = state ? state->tree.at.size() : 0;
  std::span<Tensor> rest = std::span(made).subspan(results.size() + leaves);
  for (const VariableChange& change : variables) change.apply(args, rest);
  if (state) {
    Leaves left = state->with(std::span(made).subspan(results.size(), leaves));
    to_the_end([&] {
      assign_leaves(trees.outputs.ptr(), state->tree.structure, left, "compile: outputs",
                    state->removed);
    });
  }
  bool single = out->tree.structure.nodes().size() == 1 && results.size() == 1;
  if (single && out->numbers.empty()) return wrapped(std::move(results[0]));
  return out->tree.structure.build(out->with(results));
}

ResultTree::ResultTree(TensorTree made) : tree(std::move(made)) {
  for (size_t k = 0; k < tree.at.size(); ++k) {
    if (is_given_number(tree.tensors[k])) numbers.push_back(k);
    tree.leaves[tree.at[k]] = nb::none();
  }
  tree.tensors.clear();
}

Leaves ResultTree::with(std::span<Tensor> others) const {
  Leaves leaves = tree.leaves;
  for (size_t k = 0; k < tree.at.size(); ++k) {
    bool number = std::ranges::count(numbers, k);
    leaves[tree.at[k]] = number ? number_object(others[k]) : wrapped(std::move(others[k]));
  }
  return leaves;
}

// Finding ------------------------------------------------------------------------------------

/// The latest that differs in sizes and numbers only, or null.
FunctionTraces::Entry FunctionTraces::nearest(const CallArguments& args) const {
  return table_.latest([&](const TraceEntry& entry) {
    return entry.key.is_like(args.key) && generalised({entry.key.types, {}}, args.key.types);
  });
}

/// What was traced belongs to the code that the function had then.
void FunctionTraces::forget_other_code(nb::handle f) {
  PyObject* code = PyFunction_Check(f.ptr()) ? PyFunction_GET_CODE(f.ptr()) : nullptr;
  if (code == code_.ptr()) return;
  table_.clear();
  code_ = nb::borrow(code);
}

FunctionTraces::Entry FunctionTraces::entry(CallArguments& args) {
  struct Call {
    FunctionTraces& traces;
    CallArguments& args;
    bool is_served_by(const TraceEntry& entry) { return entry.serves(args); }
    Entry trace() { return traces.trace(args); }
  };
  forget_other_code(args.function);
  Entry found = table_.find_or_trace(Call{*this, args});
  if (traces_under_way > 0) found->objects.read_again(args.key);
  if (found->asked) ++unknown_values_asked;
  return found;
}

// Tracing ------------------------------------------------------------------------------------

static bool is_number_read(const OpenRead& read) { return is_number(read.value); }

bool FunctionTraces::Open::has_numbers() const {
  return !given.empty() || std::ranges::any_of(reads, is_number_read);
}

void FunctionTraces::Open::fix_numbers() {
  constant.insert(constant.end(), given.begin(), given.end());
  given.clear();
  for (const OpenRead& read : reads)
    if (is_number_read(read)) constant_reads.push_back(read.path);
  std::erase_if(reads, is_number_read);
}

void FunctionTraces::Open::fix_values() {
  fix_numbers();
  for (const OpenRead& read : reads) constant_reads.push_back(read.path);
  reads.clear();
}

/// Sizes and numbers are constants of a trace until they vary.
FunctionTraces::Open FunctionTraces::open_for(const CallArguments& args,
                                              const TraceEntry* like) const {
  Open open;
  std::optional<Pattern> wider;
  if (like) {
    open.constant = like->constant;
    open.given = like->given;
    for (size_t n = 0; n < args.key.numbers.size(); ++n) {
      bool settled = std::ranges::count(open.constant, n) || std::ranges::count(open.given, n);
      if (!settled && like->key.numbers[n].bits != args.key.numbers[n].bits)
        open.given.push_back(n);
    }
    open.constant_reads = like->constant_reads;
    open.reads = like->objects.varied(args.key, like->constant_reads);
    wider = generalised({like->key.types, {}}, args.key.types);
  }
  open.pattern = settings.shapeless ? shapeless_pattern(args.key.types)
                                    : wider.value_or(exact_pattern(args.key.types));
  return open;
}

Retrace FunctionTraces::reason_for(CallArguments& args, const CallKey::Names& names) const {
  Entry like = nearest(args);
  if (!like)
    like = table_.latest([&](const TraceEntry& e) { return e.key.has_arguments_of(args.key); });
  if (!like) like = table_.latest();
  if (!like) return {.call = current_loc};
  auto name = [&](size_t tensor) { return like->key.path(like->key.at[tensor], names); };
  return reason_beside(*like->compiled, args.key.differences(like->key, names), args.key.types,
                       name, [&] { return like->objects.broken(args.key); });
}

/// Where leaving something open fails, as when the function branches on a number, it is constant,
/// also when the function catches the error.
FunctionTraces::Entry FunctionTraces::trace(CallArguments& args) {
  CallKey::Names names = names_of_arguments(args.function, args.key.positional);
  Retrace why = reason_for(args, names);
  Entry like = nearest(args);
  Open open = open_for(args, like.get());
  auto fixes_numbers = [&](const TraceEntry* known) {
    if (!open.has_numbers()) return false;
    nb::list objects = (known ? known->objects : ObjectGuards()).read_objects(args.key);
    std::string asks = question_of_type(args.function, objects);
    if (asks.empty()) return false;
    why.notes.push_back(format("not left open: {}", asks));
    open.fix_numbers();
    return true;
  };
  fixes_numbers(like.get());
  Entry made;
  const uint64_t asked = unknown_values_asked;
  while (!made) {
    bool last = !open.has_values() && open.pattern.symbols.empty();
    try {
      made = trace(args, open);
      bool caught = made->asked && open.has_values();
      if (!caught && !fixes_numbers(made.get())) break;
      made = nullptr;
      if (!caught) continue;
      why.notes.push_back("not left open: a value was asked for, and the error caught");
    } catch (nb::python_error& error) {
      if (last || !error.matches(PyExc_Exception)) throw;  // or the user's interrupt
      why.notes.push_back(format("not left open: {}", one_line(nb::str(error.value()).c_str())));
    } catch (const UserError& error) {
      if (last) throw;
      why.notes.push_back(format("not left open: {}", one_line(error.what())));
    }
    if (!open.has_values()) open.pattern = exact_pattern(args.key.types);
    open.fix_values();
    unknown_values_asked = asked;  // the next trace does without, and so do those around
  }
  auto name = [&](size_t tensor) { return args.key.path(args.key.at[tensor], names); };
  add_symbols(open.pattern, name, why.symbols);
  made->compiled->takes(args.key.types, args.sizes);
  args.opened.clear();
  for (const OpenRead& read : open.reads) args.opened.push_back(read.value);
  return table_.add(std::move(made), std::move(why),
                    debug_log_on ? name_of_function(args.function) : "");
}

FunctionTraces::Entry FunctionTraces::trace(const CallArguments& args, const Open& open) const {
  auto entry = std::make_shared<TraceEntry>(args.key);
  entry->given = open.given, entry->constant = open.constant;
  entry->constant_reads = open.constant_reads;
  for (size_t n : open.given) entry->key.numbers[n].open = true;
  entry->key.hold_weakly();
  Tensors parameters;
  bool may_keep = false;  // tensors of the trace: for rules of custom functions
  auto run = [&](const Tensors& params) {
    parameters = params;
    ChangesOfModules changes(args.function);
    Tensors out = run_python(args, params, open.reads, *entry);
    changes.end(out);
    may_keep = entry->returns_shared || !Trace::current()->kept.empty();
    return out;
  };
  Tensors like = args.tensors;
  args.append_numbers(entry->given, like);
  for (const OpenRead& read : open.reads) like.push_back(read.value);
  Pattern pattern = open.pattern;
  for (size_t i = args.tensors.size(); i < like.size(); ++i)
    pattern.types.push_back(type_of(like[i]));
  const uint64_t asked = unknown_values_asked;
  auto made =
      std::make_shared<Compiled>(run, like, std::move(pattern), settings.options, settings.demands);
  entry->asked = unknown_values_asked != asked;
  if (!may_keep) warn_of_leaks(parameters, args.function);
  std::vector<bool> donated(like.size());
  for (const Donated& d : entry->donated) donated[d.tensor] = true;
  if (!entry->donated.empty()) made->donate(std::move(donated));
  const std::vector<TypeRef>& types = made->pattern().types;
  entry->key.types.assign(types.begin(),
                          types.begin() + static_cast<ptrdiff_t>(args.tensors.size()));
  entry->compiled = std::move(made);
  return entry;
}

Tensors FunctionTraces::run_python(const CallArguments& args, const Tensors& params,
                                   std::span<const OpenRead> open, TraceEntry& entry) const {
  OwnPlaces own;
  Leaves leaves = args.substituted(params, entry.given);
  TracedVariables variables(args, params, leaves);
  TracedState state(settings.state, args, leaves);
  CallKey::Names names = names_of_arguments(args.function, args.key.positional);
  std::span<const Tensor> opened = std::span(params).last(open.size());
  ObjectGuards::Record reads(args, names, settings.state.inputs, open, opened);
  nb::object result = args.call(leaves);
  entry.objects = reads.guards(place_of_function(args.function));
  warn_of_assigned_arguments(args, params, leaves, names);
  entry.returns_shared = is_shared(result.ptr());
  TensorTree out(result.ptr(), Numbers::stay_known);
  check_result(out, args.function);
  Tensors all = out.tensors;
  entry.out.emplace(std::move(out));
  if (std::optional<TensorTree> left = state.after_call()) {
    all.insert(all.end(), left->tensors.begin(), left->tensors.end());
    entry.state.emplace(std::move(*left));
    entry.state->removed = state.removed();
  }
  entry.variables = variables.after_call(state, all);
  for (auto [tensor, leaf] : state.replaced()) {
    auto& at = entry.state->tree.at;
    auto found = std::ranges::lower_bound(at, leaf);
    bool there = found != at.end() && *found == leaf;
    size_t place = entry.out->tree.at.size() + static_cast<size_t>(found - at.begin());
    entry.donated.push_back({tensor, there ? place : Donated::kNone});
  }
  for (const VariableChange& change : entry.variables)
    if (change.rebound) entry.donated.push_back({change.tensor});
  for (size_t k = 0; k < args.tensors.size(); ++k)
    if (args.is_argument(k) && std::ranges::count(settings.donated, args.part(k)))
      entry.donated.push_back({k});
  return all;
}

// What Python's collector asks for -------------------------------------------------------------

static int visit_structure(const Structure& structure, visitproc visit, void* arg) {
  for (const Structure::Node& node : structure.nodes()) Py_VISIT(node.data.ptr());
  return 0;
}

static int visit_key(const CallKey& key, visitproc visit, void* arg) {
  Py_VISIT(key.keywords.ptr());
  for (const CallKey::Constant& c : key.constants) Py_VISIT(c.value.ptr());
  for (const nb::object& o : key.data) Py_VISIT(o.ptr());
  for (const CallKey::Part& part : key.parts)
    if (int stop = part.structure ? visit_structure(*part.structure, visit, arg) : 0) return stop;
  return 0;
}

static int visit_results(const ResultTree& results, visitproc visit, void* arg) {
  for (const nb::object& o : results.tree.leaves) Py_VISIT(o.ptr());
  return visit_structure(results.tree.structure, visit, arg);
}

int FunctionTraces::traverse(visitproc visit, void* arg) const {
  Py_VISIT(settings.state.inputs.ptr());
  Py_VISIT(settings.state.outputs.ptr());
  for (const Entry& entry : table_.entries()) {
    if (entry.use_count() > 1) continue;  // also held by a call under way
    if (int stop = visit_key(entry->key, visit, arg)) return stop;
    if (int stop = entry->objects.traverse(visit, arg)) return stop;
    if (int stop = visit_results(*entry->out, visit, arg)) return stop;
    if (int stop = entry->state ? visit_results(*entry->state, visit, arg) : 0) return stop;
  }
  return 0;
}

void FunctionTraces::clear() {
  table_.clear();
  settings.state = {};
}

}  // namespace tn::python
