#include "functions/compiled.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/stack_array.h"
#include "compiler/graph_cache.h"
#include "eval/bad_values.h"
#include "eval/eval.h"
#include "eval/index_checks.h"
#include "eval/modes.h"
#include "eval/run_together.h"
#include "ir/interned.h"
#include "ir/number.h"
#include "ir/precision.h"
#include "ir/rewrite.h"
#include "ir/trace.h"
#include "ir/watch.h"
#include "mesh/processes.h"
#include "observe/check.h"
#include "observe/op_events.h"
#include "observe/stage_text.h"
#include "ops/call.h"
#include "runtime/device.h"
#include "runtime/own_thread.h"
#include "transforms/tape.h"

namespace tn {

Effort effort_of(int optimization_level) {
  if (optimization_level < 0 || optimization_level > 5)
    fail("compile: optimization_level is 0 to 5, not {}", optimization_level);
  return static_cast<Effort>(std::min(optimization_level, 2));
}

static std::vector<TypeRef> types_of(std::span<const Tensor> list) {
  std::vector<TypeRef> types;
  types.reserve(list.size());
  for (const Tensor& t : list) types.push_back(type_of(t));
  return types;
}

std::vector<uint8_t> watching(std::span<const Tensor> args) {
  uint8_t counts = kRefused | (inherited & kKept);
  std::vector<uint8_t> watched;
  watched.reserve(args.size() + 1);
  for (const Tensor& t : args) watched.push_back(watch_bits(*t.node()) & counts);
  watched.push_back(inherited);
  return watched;
}

Compiled::Compiled(const Function& f, std::span<const Tensor> like, Pattern pattern,
                   CompileOptions options, RunDemands demands)
    : options_(std::move(options)),
      pattern_(std::move(pattern)),
      watched_(watching(like)),
      demands_(demands),
      narrow_(narrow_type),
      made_at_(current_device()),
      deadline_(demands.timeout, demands.timeout_fails) {
  LastingScope lasting;
  for (TypeRef type : pattern_.types) make_lasting(type);
  options_.memory_limit = demands.memory_limit;
  options_.products = wanted_products();
  bool fits = pattern_.matches(types_of(like), options_.sizes);
  invariant(fits, "compile: traced for a pattern that its own arguments do not fit");
  Function on_numbers = [&](Tensors params) {
    for (size_t i = 0; i < like.size(); ++i) {
      set_watch_bits(*params[i].node(), watched_[i] & kKept ? kOnPath | watched_[i] : watched_[i]);
      if (is_number(like[i])) params[i] = as_number(std::move(params[i]));
    }
    Tensors made = f(params);
    makes_leaves_ = std::ranges::any_of(
        params, [](const Tensor& t) { return (watch_bits(*t.node()) & (kLeaf | kKept)) == kLeaf; });
    return made;
  };
  double traced_ms = 0;
  {
    Stopwatch tracing(traced_ms);
    traced_ = trace(on_numbers, pattern_.types, options_.sizes);
  }
  deadline_.add_tracing(traced_ms * 1e-3);
  guards_ = traced_.guards;
  if (!SizeHints::current()) settle_sizes();
}

/// What the guards say of symbols goes into the graph and the pattern.
void Compiled::settle_sizes() {
  Solved solved = solve(traced_.guards);
  guards_ = std::move(solved.rest);
  traced_.graph = substitute(traced_.graph, solved.replacements);
  pattern_ = substituted(pattern_, solved.replacements);
  std::erase_if(options_.sizes,
                [&](const Binding& b) { return !contains(pattern_.symbols, b.symbol); });
}

bool Compiled::takes(std::span<const TypeRef> types, std::vector<Binding>& sizes) const {
  if (narrow_ != narrow_type || made_at_ != current_device()) return false;
  if (options_.products != wanted_products()) return false;
  if (!pattern_.matches(types, sizes)) return false;
  if (guards_.empty()) return true;
  std::vector<Binding> values = sizes;
  if (SizeHints* around = SizeHints::current())
    values.insert(values.end(), around->values.begin(), around->values.end());
  return std::ranges::all_of(guards_, [&](const SizeGuard& g) { return holds(g, values); });
}

bool Compiled::is_recorded(std::span<const Tensor> args) const {
  bool has_effects = traced_.graph.outputs.size() > traced_.results;
  return traced_.bound || Trace::tracing() || (traced_.differentiable && has_effects) ||
         std::any_of(args.begin(), args.end(), is_watched);
}

bool Compiled::loses_leaves(std::span<const Tensor> args) const {
  return makes_leaves_ || lead_to_lost_leaves(args) ||
         (!traced_.leaves.empty() && lead_to_lost_leaves(traced_.leaves));
}

Tensors Compiled::record(std::span<const Tensor> args, std::span<const Binding> sizes) const {
  std::vector<Replacement> values = replacements(sizes);
  for (SizeGuard g : guards_) {  // those of sizes around this trace are for that one to know
    g.a = substitute(g.a, values), g.b = substitute(g.b, values);
    ask_again({&g, 1});
  }
  Tensors in(args.begin(), args.end());
  in.insert(in.end(), traced_.leaves.begin(), traced_.leaves.end());
  GraphRef body = intern(substitute(traced_.graph, values));
  Tensors out = ops::emit_call(ops::CallKind::plain, body, in);
  for (const auto& rules : traced_.kept)
    for (Trace* trace = Trace::current(); trace; trace = trace->outer) trace->kept.push_back(rules);
  for (size_t i = traced_.results; i < out.size(); ++i) Trace::perform(out[i]);
  out.resize(traced_.results);
  return out;
}

CompileOptions Compiled::options() const {
  flush(traced_.leaves);
  CompileOptions all = options_;
  all.is_function = true;
  {
    std::lock_guard lock(shared_->mutex);
    if (tuned_choice_) all.off = tuned_choice_->off;
  }
  for (const Tensor& t : traced_.leaves) all.constants.push_back(bound_of(slot_of(t)));
  return all;
}

const CompiledGraph& Compiled::code() const {
  if (has_code_.load(std::memory_order_acquire)) return *code_;
  std::call_once(shared_->compiled, [this] {
    code_ = compiled_graph(traced_.graph, options());
    before_ = code_->counts();
    has_code_.store(true, std::memory_order_release);
  });
  return *code_;
}

bool Compiled::is_together() const {
  std::call_once(shared_->asked_together,
                 [&] { shared_->is_together = is_run_together(traced_.graph); });
  return shared_->is_together;
}

std::shared_ptr<const Plan> Compiled::interpreted_plan(std::span<const Binding> sizes) const {
  CompileOptions plain = options();
  plain.effort = Effort::e0;
  return compile(substitute(traced_.graph, replacements(sizes)), plain);
}

Deadline::Found Compiled::plan(std::span<const Binding> sizes) const {
  const CompiledGraph& compiled = code();
  if (demands_.timeout <= 0 || (!demands_.timeout_fails && is_together()))
    return {compiled.plan(sizes), true};
  return deadline_.plan(code_, sizes, [&] { return interpreted_plan(sizes); });
}

/// Of the last call, if that had these sizes.
std::shared_ptr<const Compiled::Ready> Compiled::known_ready(std::span<const Binding> sizes) const {
  if (const Ready* fixed = has_fixed_.load(std::memory_order_acquire))
    return {std::shared_ptr<const Ready>(), fixed};  // it lives as long as this
  Shared& shared = *shared_;
  std::lock_guard lock(shared.mutex);
  const std::shared_ptr<const Ready>& last = shared.ready;
  bool known = last && std::ranges::equal(last->sizes, sizes, {}, {}, &Binding::value);
  return known ? last : nullptr;
}

/// Before there is code. What happens besides computing must happen once, so that is not tuned.
void Compiled::tune(std::span<const Bound> in, std::span<const Binding> sizes) const {
  std::call_once(shared_->tuned, [&] {
    if (has_code_.load(std::memory_order_acquire) || options_.effort == Effort::e0 ||
        traced_.graph.outputs.size() > traced_.results || is_together())
      return;
    Tuned choice = tuned(traced_.graph, options(), sizes, {in});
    std::lock_guard lock(shared_->mutex);
    tuned_choice_ = std::move(choice);
  });
}

std::shared_ptr<const Compiled::Ready> Compiled::ready(std::span<const Binding> sizes) const {
  if (std::shared_ptr<const Ready> known = known_ready(sizes)) return known;
  std::shared_ptr<const Ready> made = make_ready(sizes);
  if (!made->lasts) return made;
  std::lock_guard lock(shared_->mutex);
  shared_->ready = made;
  if (sizes.empty() && !fixed_) {
    fixed_ = made;
    has_fixed_.store(made.get(), std::memory_order_release);
  }
  return made;
}

/// What a device that plans its parts itself needs is known when they run.
static bool may_exceed(const Plan& plan, int64_t limit) {
  if (!plan.parts) return plan.unplanned || memory_needed(plan) > limit;
  return std::ranges::any_of(plan.parts->list, [&](const Plan::Part& part) {
    return may_exceed(*part.plan->plan, limit);
  });
}

std::shared_ptr<const Compiled::Ready> Compiled::make_ready(std::span<const Binding> sizes) const {
  InternScope scope;
  auto made = std::make_shared<Ready>();
  auto [plan, compiled] = this->plan(sizes);
  // The interpreter keeps more: what it would run meanwhile does not count, if it does not fit.
  if (!compiled && demands_.memory_limit && may_exceed(*plan, demands_.memory_limit))
    plan = code().plan(sizes), compiled = true;
  made->plan = std::move(plan), made->lasts = compiled;
  {
    std::lock_guard lock(shared_->mutex);
    made->alone = tuned_choice_ && tuned_choice_->alone;
  }
  made->ops = op_list(traced_.graph);
  made->together = is_together();
  if (made->plan->parts) {
    std::vector<Loc> traced = places_in(traced_.graph);
    made->places = places_of_run(planned_places(*made->plan), traced.size(),
                                 [&](size_t i) { return traced[i]; });
  }
  for (const Binding& b : sizes) made->sizes.push_back(b.value);
  std::vector<Replacement> values = replacements(sizes);
  for (size_t i = 0; i < traced_.results; ++i)
    made->types.push_back(
        substitute(traced_.graph.types[static_cast<size_t>(traced_.graph.outputs[i])], values));
  std::shared_ptr<const Ready> owner = std::move(scope.held).owned_by(made);
  if (demands_.memory_limit) check_memory(*made->plan);
  return owner;
}

void Compiled::check_memory(const Plan& plan) const {
  if (plan.parts)
    for (const Plan::Part& part : plan.parts->list) check_memory(*part.plan->plan);
  int64_t limit = demands_.memory_limit;
  if (plan.parts || plan.unplanned || memory_needed(plan) <= limit) return;
  fail(Fault::memory, Hint{"use smaller batches, or raise memory_limit"}, "compile: {}",
       over_limit_text(memory_report(plan), limit, options_.effort));
}

bool Compiled::Ready::is_short() const {
  return seconds.load(std::memory_order_relaxed) < kShortSeconds;
}

/// Runs that keep the host's lock are measured now and then, others always: whether a plan is short
/// is known that way.
void Compiled::run_ready(const Ready& ready, bool keeps_lock, std::span<const Bound> in,
                         std::span<Bound> out, bool& overwritten) const {
  if (ready.places.now && ready.places.now != run_places.now) {
    RunPlacesScope places(ready.places);
    return run_ready(ready, keeps_lock, in, out, overwritten);
  }
  std::optional<mesh::CallTogether> together;
  if (ready.together) [[unlikely]]
    together.emplace();
  constexpr uint32_t kMeasuredOf = 32;
  std::optional<OnOwnThread> alone;
  if (ready.alone) alone.emplace();
  bool measured =
      demands_.keeps_lock &&
      (!keeps_lock || ready.runs.fetch_add(1, std::memory_order_relaxed) % kMeasuredOf == 0);
  if (!measured) return run(*ready.plan, in, nullptr, out, &overwritten);
  using Clock = std::chrono::steady_clock;
  Clock::time_point began = Clock::now();
  run(*ready.plan, in, nullptr, out, &overwritten);  // devices go on without the lock
  float seconds = std::chrono::duration<float>(Clock::now() - began).count();
  ready.seconds.store(seconds, std::memory_order_relaxed);
}

void Compiled::count(CallStats& stats) const {
  if (!has_code_.load(std::memory_order_acquire)) return;
  CompileCounts now = code_->counts();
  stats.graph_compiles += now.graphs - before_.graphs;
  stats.kernel_compiles += now.compiled - before_.compiled;
  int64_t first = before_.plans == 0 && now.plans > 0;
  stats.replans += now.plans - before_.plans - first;
}

void Compiled::check(std::span<const Bound> in, std::span<const Bound> out,
                     std::span<const Binding> sizes) const {
  Graph graph = substitute(traced_.graph, replacements(sizes));
  graph.outputs.resize(traced_.results);  // effects happen once
  auto anew = [](const Graph& part, const CompileOptions& options) {
    return compile(part, options);
  };
  check_run({prune(graph), options(), in}, out, anew);
}

void Compiled::look_at(std::span<const Bound> in, std::span<const Bound> out,
                       std::span<const Binding> sizes) const {
  Graph graph = substitute(traced_.graph, replacements(sizes));
  graph.outputs.resize(traced_.results);
  check_values({graph, options(), in}, out);
}

/// Interpreted, since the interpreter's gathers and scatters check their indices.
void Compiled::run_checked(std::span<const Bound> in, std::span<Bound> out,
                           std::span<const Binding> sizes) const {
  try {
    IndexChecks checked;
    run(*interpreted_plan(sizes), in, nullptr, out);
  } catch (const ops::OutOfBounds& error) {
    Graph graph = substitute(traced_.graph, replacements(sizes));
    graph.outputs.resize(traced_.results);
    fail_out_of_bounds({graph, options(), in}, error);
  }
}

void Compiled::donate(std::vector<bool> arguments) {
  if (demands_.check || traced_.graph.outputs.size() > traced_.results) return;
  arguments.resize(static_cast<size_t>(traced_.graph.inputs()));
  options_.donated = std::move(arguments);
}

/// Lets go of donated tensors while a plan runs on their memory.
class Compiled::GivenAway {
 public:
  GivenAway(const std::vector<bool>& donated, std::span<Tensor> args, std::span<const Bound> bound)
      : args_(args), bound_(bound) {
    for (size_t i = 0; i < args.size() && i < donated.size(); ++i) {
      if (!donated[i]) continue;
      hand_out(type_of(args[i]));
      given_.push_back({i, type_of(args[i])});
      args[i] = {};
    }
  }
  /// What a run that failed had not written over is there again.
  ~GivenAway() {
    if (done) return;
    for (auto [i, type] : given_)
      if (!overwritten || !bound_[i].buffer.unique())
        args_[i] = make_data(bound_[i].buffer, bound_[i].offset, type);
  }
  bool is_empty() const { return given_.empty(); }
  bool done = false, overwritten = false;

 private:
  std::span<Tensor> args_;
  std::span<const Bound> bound_;
  std::vector<std::pair<size_t, TypeRef>> given_;
};

namespace {

/// The stop points of a run that writes over what it was given. From then on it goes on for a while
/// when the user wants to stop: it is nearly always over by then, and nothing is lost.
class Patience {
 public:
  explicit Patience(const bool& overwritten)
      : overwritten_(overwritten),
        outer_(std::exchange(current, this)),
        outside_(std::exchange(own_stop_point, stop_point)) {}
  ~Patience() { current = outer_, own_stop_point = outside_; }
  Patience(const Patience&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr auto kPatience = std::chrono::seconds(3);

  bool lasts() {
    if (!overwritten_ || stop_wanted) return false;
    if (end_ == Clock::time_point()) end_ = Clock::now() + kPatience;
    return Clock::now() < end_;
  }
  static void stop_point() {
    if (current->lasts()) return;
    struct Outside {
      Outside() { own_stop_point = current->outside_; }
      ~Outside() { own_stop_point = stop_point; }
    } outside;
    stop_if_asked();
  }
  const bool& overwritten_;
  Patience* outer_;
  void (*outside_)();
  Clock::time_point end_ = {};
  static thread_local Patience* current;
};

thread_local Patience* Patience::current = nullptr;

}  // namespace

Tensors Compiled::operator()(std::span<Tensor> args, std::span<const Binding> sizes) const {
  RecordScope scope;
  if (is_recorded(args)) return record(args, sizes);
  // backward() needs the op; its values are there at once.
  Tensors results = traced_.differentiable ? record(args, sizes) : Tensors();
  flush(args);
  std::shared_ptr<const Ready> ready = demands_.keeps_lock ? known_ready(sizes) : nullptr;
  bool keeps_lock = ready && ready->is_short();
  std::optional<HostUnlocked> unlocked;
  if (!keeps_lock) unlocked.emplace();  // also while another thread makes the plan and may need it
  StackArray<Bound, 8> inputs(args.size()), outputs(traced_.graph.outputs.size());
  std::span<Bound> in = inputs.all(), out = outputs.all();
  for (size_t i = 0; i < args.size(); ++i) in[i] = bound_of(slot_of(args[i]));
  if (demands_.tunes) tune(in, sizes);
  if (!ready) ready = this->ready(sizes);
  bool looking = is_looking(), checking = compiled_indices_are_checked;
  std::vector<Bound> kept;
  if (looking || checking) kept.assign(in.begin(), in.end());  // nothing is written over then
  static const std::vector<bool> kNone;
  GivenAway given(traced_.differentiable ? kNone : options_.donated, args, in);
  std::optional<Patience> patience;
  if (!given.is_empty()) patience.emplace(given.overwritten);
  report_ops(ready->ops, ready->lasts);
  if (checking)
    run_checked(in, out, sizes);
  else
    run_ready(*ready, keeps_lock, in, out, given.overwritten);
  if (looking) look_at(in, out, sizes);
  given.done = true;
  if (demands_.check) check(in, out, sizes);
  if (!results.empty()) results[0].node()->depth.store(0, std::memory_order_relaxed);
  for (size_t i = 0; i < results.size(); ++i) {
    materialise(results[i].node()->slots()[i], out[i].buffer, out[i].offset);
    if (!traced_.leads[i])
      results[i] = make_data(std::move(out[i].buffer), out[i].offset, ready->types[i]);
  }
  for (size_t i = results.size(); i < traced_.results; ++i)
    results.push_back(make_data(std::move(out[i].buffer), out[i].offset, ready->types[i]));
  return results;
}

std::string Compiled::show(std::string_view stage) const {
  if (is_source_target(stage)) return python_text(traced_.graph, options(), stage);
  HostUnlocked unlocked;
  return stage_text(traced_.graph, stage, [&] { return code().compilation(options_.sizes); });
}

std::string Compiled::source(std::string_view target, std::string_view name,
                             std::span<const std::string> inputs) const {
  Graph graph = traced_.graph;
  graph.name = name.starts_with('<') ? "main" : name;  // a lambda
  std::copy(inputs.begin(), inputs.end(), graph.input_names.begin());
  return python_text(graph, options(), target);
}

MemoryReport Compiled::memory() const {
  HostUnlocked unlocked;
  return memory_report(*code().plan(options_.sizes));
}

Explanation Compiled::explain(std::span<const Binding> sizes) const {
  HostUnlocked unlocked;
  Explanation out = tn::explain(code().compilation(sizes));
  out.counts = code().counts();
  for (const Binding& b : sizes) out.sizes.push_back({to_text(b.symbol), "", b.value});
  for (const SizeGuard& g : traced_.guards) {
    std::string place = to_text(g.loc);
    out.guards.push_back(to_text(g) + (place.empty() ? "" : format(" ({})", place)));
  }
  return out;
}

}  // namespace tn
