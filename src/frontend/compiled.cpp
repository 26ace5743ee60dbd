#include "frontend/compiled.h"

#include <algorithm>

#include "base/error.h"
#include "frontend/eval.h"
#include "frontend/stages.h"
#include "ir/number.h"
#include "ir/trace.h"
#include "ops/call.h"
#include "tenon/compile.h"
#include "transforms/tape.h"

namespace tn {

Effort effort_of(int optimization_level) {
  if (optimization_level < 0 || optimization_level > 5)
    fail("compile: optimization_level is 0 to 5, not {}", optimization_level);
  return static_cast<Effort>(std::min(optimization_level, 2));
}

/// Whether a transform under way looks at what is computed from `t`.
static bool is_watched(const Tensor& t) {
  return t.node()->traced || running_tape(t.node()->taped);
}

Compiled::Compiled(const Function& f, std::span<const Tensor> like, CompileOptions options)
    : options_(std::move(options)) {
  uint64_t start = next_sequence();
  Trace trace("compile", Trace::Values::unknown);
  Tensors params;
  for (const Tensor& t : like) {
    Tensor param = make_param(type_of(t));
    params.push_back(is_number(t) ? as_number(std::move(param)) : param);
  }
  Tensors out = f(params);
  trace.end();
  check_given(out, "compile", "result");
  results_ = out.size();
  out.insert(out.end(), trace.effects.begin(), trace.effects.end());
  Captured captured = graph_of(tape_since(start, params, out), params, out, Numbers::are_constants);
  graph_ = std::move(captured.graph);
  leaves_ = std::move(captured.leaves);
  kept_ = std::move(trace.kept);
  bound_ = std::any_of(leaves_.begin(), leaves_.end(), is_watched);
}

bool Compiled::takes(std::span<const Tensor> args) const {
  if (args.size() + leaves_.size() != static_cast<size_t>(graph_.inputs())) return false;
  for (size_t i = 0; i < args.size(); ++i)
    if (type_of(args[i]) != graph_.types[i]) return false;
  return true;
}

bool Compiled::is_recorded(std::span<const Tensor> args) const {
  return bound_ || Trace::tracing() || std::any_of(args.begin(), args.end(), is_watched);
}

Tensors Compiled::record(std::span<const Tensor> args) const {
  Tensors in(args.begin(), args.end());
  in.insert(in.end(), leaves_.begin(), leaves_.end());
  Tensors out = ops::emit_call(ops::CallKind::plain, body(), in);
  for (const auto& rules : kept_)
    for (Trace* trace = Trace::current(); trace; trace = trace->outer) trace->kept.push_back(rules);
  for (size_t i = results_; i < out.size(); ++i) Trace::perform(out[i]);
  out.resize(results_);
  return out;
}

GraphRef Compiled::body() const {
  std::call_once(interned_, [this] { body_ = intern(Graph(graph_)); });
  return body_;
}

CompileOptions Compiled::options() const {
  flush(leaves_);
  CompileOptions all = options_;
  for (const Tensor& t : leaves_) all.constants.push_back(bound_of(slot_of(t)));
  return all;
}

const Plan& Compiled::plan() const {
  std::call_once(planned_, [this] { plan_ = compile(graph_, options()); });
  return *plan_;
}

Tensors Compiled::operator()(std::span<const Tensor> args) const {
  invariant(takes(args), "compile: called with arguments of other types than traced for");
  if (is_recorded(args)) return record(args);
  flush(args);
  HostUnlocked unlocked;  // also while another thread makes the plan, which may need the lock
  std::vector<Bound> in, out(graph_.outputs.size());
  in.reserve(args.size());
  for (const Tensor& t : args) in.push_back(bound_of(slot_of(t)));
  run(plan(), in, nullptr, out);
  Tensors results;
  results.reserve(results_);
  for (size_t i = 0; i < results_; ++i)
    results.push_back(make_data(std::move(out[i].buffer), out[i].offset,
                                graph_.types[static_cast<size_t>(graph_.outputs[i])]));
  return results;
}

std::string Compiled::show(std::string_view stage) const {
  HostUnlocked unlocked;
  return stage_text(graph_, options(), stage);
}

MemoryReport Compiled::memory() const {
  HostUnlocked unlocked;
  return memory_report(plan());
}

// Functions of C++ ---------------------------------------------------------------------------

struct CompiledFunction::State {
  using Entry = std::shared_ptr<const Compiled>;
  static constexpr size_t kMost = 256;  // the oldest go first

  Function f;
  CompileOptions options;
  std::mutex mutex = {};
  std::vector<Entry> entries = {};

  Entry find(const Tensors& args) {
    std::lock_guard lock(mutex);
    auto found = std::find_if(entries.rbegin(), entries.rend(),
                              [&](const Entry& e) { return e->takes(args); });
    return found == entries.rend() ? nullptr : *found;
  }
  Entry entry(const Tensors& args) {
    check_given(args, "compile", "argument");
    if (Entry known = find(args)) return known;
    Entry made = std::make_shared<const Compiled>(f, args, options);
    if (made->is_bound()) return made;
    if (Entry known = find(args)) return known;  // by another thread meanwhile
    std::lock_guard lock(mutex);
    if (entries.size() == kMost) entries.erase(entries.begin());
    return entries.emplace_back(std::move(made));
  }
};

CompiledFunction::CompiledFunction(Function f, int optimization_level)
    : state_(new State{std::move(f), {.effort = effort_of(optimization_level)}}) {}

Tensors CompiledFunction::operator()(const Tensors& args) const {
  return (*state_->entry(args))(args);
}

std::string CompiledFunction::show(std::string_view stage, const Tensors& args) const {
  return state_->entry(args)->show(stage);
}

CompiledFunction compile(Function f, int optimization_level) {
  return {std::move(f), optimization_level};
}

}  // namespace tn
