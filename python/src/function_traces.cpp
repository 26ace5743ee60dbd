#include "function_traces.h"

#include <nanobind/stl/string.h>

#include <algorithm>

#include "base/error.h"
#include "ir/number.h"

namespace tn::python {

namespace {

/// How many traces are under way on this thread.
thread_local int depth_of_traces = 0;

struct TraceDepth {
  TraceDepth() { ++depth_of_traces; }
  ~TraceDepth() { --depth_of_traces; }
};

/// Waits without Python's lock, which whoever traces needs, and lets the user interrupt.
void lock_without_python(std::unique_lock<std::timed_mutex>& lock) {
  while (!lock) {
    {
      nb::gil_scoped_release unlocked;
      (void)lock.try_lock_for(std::chrono::milliseconds(100));
    }
    if (!lock && PyErr_CheckSignals()) throw nb::python_error();
  }
}

nb::object number_object(const Tensor& t) {
  if (t.node()->traced) return wrapped(as_number(t));
  evaluate(t);
  return element_object(t.dtype(), t.data());
}

CallKey::Names names_of_arguments(const nb::object& f, size_t count) {
  CallKey::Names names;
  nb::object ask = nb::module_::import_("tenon.transforms").attr("_argument_names");
  for (nb::handle name : ask(f, nb::none(), count)) names.push_back(nb::cast<std::string>(name));
  return names;
}

}  // namespace

bool TraceEntry::serves(CallArguments& args) const {
  return key.is_like(args.key) && key.takes_numbers_of(args.key) &&
         compiled->takes(args.key.types, args.sizes);
}

nb::object TraceEntry::run(const CallArguments& args) const {
  Tensors made = given.empty() ? (*compiled)(args.tensors, args.sizes)
                               : (*compiled)(args.with_numbers(given), args.sizes);
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

void TraceEntry::forget_tensors() {
  for (size_t k = 0; k < out->at.size(); ++k) {
    if (is_given_number(out->tensors[k])) numbers.push_back(k);
    out->leaves[out->at[k]] = nb::none();
  }
  out->tensors.clear();
}

// Finding ------------------------------------------------------------------------------------

/// Comparing may run Python code, and with it other threads that change the list.
FunctionTraces::Entry FunctionTraces::find(CallArguments& args) {
  for (size_t i = entries_.size(); i-- > 0;) {
    Entry entry = at(i);
    if (!entry || !entry->serves(args)) continue;
    if (i + 1 < entries_.size() && entries_[i] == entry)
      std::rotate(entries_.begin() + static_cast<ptrdiff_t>(i),
                  entries_.begin() + static_cast<ptrdiff_t>(i) + 1, entries_.end());
    ++hits_;
    return entry;
  }
  return nullptr;
}

/// The latest that differs in sizes and numbers only, or null.
FunctionTraces::Entry FunctionTraces::nearest(const CallArguments& args) const {
  for (size_t i = entries_.size(); i-- > 0;)
    if (Entry entry = at(i); entry && entry->key.is_like(args.key) &&
                             generalised({entry->key.types, {}}, args.key.types))
      return entry;
  return nullptr;
}

FunctionTraces::Entry FunctionTraces::entry(CallArguments& args) {
  if (Entry known = find(args)) return known;
  // A trace inside a trace waits for nobody, so that nobody waits in a circle.
  std::unique_lock alone(tracing_, std::defer_lock);
  if (depth_of_traces == 0) {
    lock_without_python(alone);
    if (Entry known = find(args)) return known;
  }
  return trace(args);
}

// Tracing ------------------------------------------------------------------------------------

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
    wider = generalised({like->key.types, {}}, args.key.types);
  }
  open.pattern =
      shapeless ? shapeless_pattern(args.key.types) : wider.value_or(exact_pattern(args.key.types));
  return open;
}

Retrace FunctionTraces::reason_for(CallArguments& args, const CallKey::Names& names) const {
  Retrace why{.call = current_loc};
  Entry like = nearest(args);
  for (size_t i = entries_.size(); !like && i-- > 0;)
    if (entries_[i]->key.has_arguments_of(args.key)) like = entries_[i];
  if (!like) like = latest();
  if (!like) return why;
  why.differences = args.key.differences(like->key, names);
  std::vector<Binding> sizes;
  if (why.differences.empty() && like->compiled->pattern().matches(args.key.types, sizes))
    if (auto broken = broken_guard(like->compiled->guards(), sizes)) why.differences = {*broken};
  if (!why.differences.empty()) why.reason = why.differences[0].reason;
  return why;
}

/// Where leaving something open fails, as when the function branches on a number, it is constant.
FunctionTraces::Entry FunctionTraces::trace(CallArguments& args) {
  CallKey::Names names = names_of_arguments(f, args.key.positional);
  Retrace why = reason_for(args, names);
  Entry like = nearest(args);
  Open open = open_for(args, like.get());
  Entry made;
  while (!made) {
    bool last = open.given.empty() && open.pattern.symbols.empty();
    try {
      made = trace(args, open);
      break;
    } catch (nb::python_error& error) {
      if (last || !error.matches(PyExc_Exception)) throw;  // or the user's interrupt
      why.notes.push_back(format("not left open: {}", nb::str(error.value()).c_str()));
    } catch (const UserError& error) {
      if (last) throw;
      why.notes.push_back(format("not left open: {}", error.what()));
    }
    if (open.given.empty()) open.pattern = exact_pattern(args.key.types);
    open.constant.insert(open.constant.end(), open.given.begin(), open.given.end());
    open.given.clear();
  }
  auto name = [&](size_t tensor) { return args.key.path(args.key.at[tensor], names); };
  add_symbols(open.pattern, name, why.symbols);
  why.assumed = made->compiled->assumed();
  log_.add(std::move(why));
  made->compiled->takes(args.key.types, args.sizes);
  return made->compiled->is_bound() ? made : add(std::move(made));
}

FunctionTraces::Entry FunctionTraces::trace(const CallArguments& args, const Open& open) const {
  auto entry = std::make_shared<TraceEntry>(args.key);
  entry->given = open.given, entry->constant = open.constant;
  for (size_t n : open.given) entry->key.numbers[n].open = true;
  auto run = [&](const Tensors& params) {
    OwnPlaces own;
    TraceDepth deeper;
    nb::object result = args.call(f.ptr(), params, entry->given);
    entry->out.emplace(result.ptr(), Numbers::stay_known);
    return entry->out->tensors;
  };
  Tensors like = args.with_numbers(entry->given);
  Pattern pattern = open.pattern;
  for (size_t i = args.tensors.size(); i < like.size(); ++i)
    pattern.types.push_back(type_of(like[i]));
  entry->compiled = std::make_shared<const Compiled>(run, like, std::move(pattern), options);
  entry->forget_tensors();
  const std::vector<TypeRef>& types = entry->compiled->pattern().types;
  entry->key.types.assign(types.begin(),
                          types.begin() + static_cast<ptrdiff_t>(args.tensors.size()));
  return entry;
}

FunctionTraces::Entry FunctionTraces::add(Entry made) {
  if (entries_.size() == kMost) entries_.erase(entries_.begin());
  return entries_.emplace_back(std::move(made));
}

CallStats FunctionTraces::stats() const {
  CallStats stats{.hits = hits_};
  log_.count(stats);
  return stats;
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

int FunctionTraces::traverse(visitproc visit, void* arg) const {
  Py_VISIT(f.ptr());
  for (const Entry& entry : entries_) {
    if (entry.use_count() > 1) continue;  // also held by a call under way
    if (int stop = visit_key(entry->key, visit, arg)) return stop;
    for (const nb::object& o : entry->out->leaves) Py_VISIT(o.ptr());
    if (int stop = visit_structure(entry->out->structure, visit, arg)) return stop;
  }
  return 0;
}

void FunctionTraces::clear() {
  entries_.clear();
  f = nb::none();
}

}  // namespace tn::python
