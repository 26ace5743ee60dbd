#include "compiler/compile_graph.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "base/debug_log.h"
#include "base/error.h"
#include "base/events.h"
#include "base/hash.h"
#include "base/interrupt.h"
#include "compiler/compiler.h"
#include "compiler/lower_fused.h"
#include "compiler/memory_report.h"
#include "compiler/placing.h"
#include "compiler/stopwatch.h"
#include "ir/interned.h"
#include "ir/rewrite.h"
#include "runtime/device.h"

namespace tn {

constinit const Compiler* compiler = nullptr;

namespace {

const Compiler& compiler_for(const Graph& graph) {
  if (!compiler) fail("{}: the runtime has no compiler", graph.name);
  return *compiler;
}

/// The plan of a set; null where it would need so much more than `limit` that its code would be
/// made in vain. In between it depends on bundles, which need code.
std::shared_ptr<const Plan> plan_near(KernelSet& set, int64_t limit, std::span<const Binding> sizes,
                                      CompileCounts& counts) {
  if (compiler && memory_of(set, sizes) > limit + limit / 2) return nullptr;
  return plan_of(set, sizes, counts);
}

/// Where `plan`, that of `set`, needs more than `limit`: a set that does the same and computes
/// values again to need no more, or as little as can be reached, and its plan. Else null.
std::unique_ptr<KernelSet> fitted(const KernelSet& set, int64_t limit,
                                  std::span<const Binding> sizes, std::shared_ptr<const Plan>& plan,
                                  CompileCounts& counts) {
  constexpr int kMostTries = 3;  // what bundles need is known when there is code
  std::unique_ptr<KernelSet> best;
  int64_t target = limit, least = plan ? memory_needed(*plan) : INT64_MAX;
  for (int n = 0; n < kMostTries && least > limit && compiler; ++n) {
    std::unique_ptr<KernelSet> made = compiler->make_fitting_set(set, sizes, target, counts);
    if (!made) break;
    std::shared_ptr<const Plan> its_plan = plan_of(*made, sizes, counts);
    int64_t needed = memory_needed(*its_plan);
    if (needed < least) least = needed, best = std::move(made), plan = std::move(its_plan);
    if (needed > limit + limit / 8) break;  // it is not the bundles
    target -= needed - limit;
  }
  return best;
}

/// Of a graph that is interpreted; the plan keeps the types that its steps refer to.
Compilation interpreted(const Graph& graph, const CompileOptions& options) {
  InternScope scope;
  scope.held.add(graph);
  CompileCounts counts;
  std::shared_ptr set = compiler_for(graph).make_kernel_set(graph, options, {}, counts, {});
  return {set, std::move(scope.held).owned_by(plan_of(*set, {}, counts)), {}};
}

/// Of sizes that `set` does not serve, those that leave tensors empty: zeros, or else all that the
/// guards which do not hold are about.
std::vector<Binding> emptying(const KernelSet& set, std::span<const Binding> sizes) {
  bool has_zeros = std::ranges::count(sizes, 0, &Binding::value) > 0;
  auto is_refused = [&](const Binding& b) {
    return std::ranges::any_of(set.guards, [&](const SizeGuard& g) {
      return !holds(g, sizes) && contains(symbols_of(g.a), b.symbol);
    });
  };
  std::vector<Binding> found;
  std::ranges::copy_if(sizes, std::back_inserter(found),
                       [&](const Binding& b) { return has_zeros ? b.value == 0 : is_refused(b); });
  return found;
}

/// "s0=3, s1=8".
std::string text_of(std::span<const Binding> sizes) {
  std::vector<std::string> values;
  for (const Binding& b : sizes) values.push_back(format("{}={}", to_text(b.symbol), b.value));
  return format("{}", join(values, ", "));
}

/// "compiled 12 ops (train.py:31, in loss): 3 kernels compiled, 0 from disk, 1 from memory, 5.2
/// ms".
void debug_plan(const Graph& graph, std::span<const Binding> sizes, const CompileCounts& before,
                const CompileCounts& now, double ms) {
  bool again = now.graphs == before.graphs;
  std::string place = graph.ops.empty() ? "" : to_text(graph.ops.back().loc);
  debug_compile("{} {} ops{}{}: {} kernels compiled, {} from disk, {} from memory, {:.2f} ms",
                again ? "planned anew" : "compiled", graph.ops.size(),
                sizes.empty() ? "" : format(" for {}", text_of(sizes)),
                place.empty() ? "" : format(" ({})", place), now.compiled - before.compiled,
                now.from_disk - before.from_disk, now.from_memory - before.from_memory, ms);
}

}  // namespace

Compilation compilation_of(const Graph& graph, const CompileOptions& options) {
  if (names_devices(graph)) return compiler_for(graph).compile_placed(graph, options);
  if (options.effort == Effort::e0) return interpreted(graph, options);
  CompileCounts counts;
  std::shared_ptr<const Plan> plan;
  std::shared_ptr set =
      compiler_for(graph).make_kernel_set(graph, options, options.sizes, counts, {});
  if (options.memory_limit) {
    plan = plan_near(*set, options.memory_limit, options.sizes, counts);
    if (auto less = fitted(*set, options.memory_limit, options.sizes, plan, counts))
      set = std::move(less);
  }
  if (!plan) plan = plan_of(*set, options.sizes, counts);
  return {std::move(set), std::move(plan), options.sizes};
}

std::shared_ptr<const PlacedPlan> on_device(Device device, std::shared_ptr<const Plan> plan,
                                            DeviceCopies& copies) {
  std::vector<Bound> constants = plan->constants;
  for (size_t i = 0; i < constants.size(); ++i)
    constants[i] =
        copies.at(device, constants[i], plan->bytes_given(static_cast<size_t>(plan->inputs) + i));
  return std::make_shared<PlacedPlan>(PlacedPlan{device, std::move(plan), std::move(constants)});
}

struct CompiledGraph::Made {
  using Values = std::vector<int64_t>;
  struct Entry {
    Values sizes;
    Compilation made;
  };
  static constexpr size_t kMostPlans = 16, kMostSets = 16;

  class Turn;

  std::mutex mutex = {};
  std::condition_variable free = {};
  bool busy = false;                // a thread makes a plan, without the lock
  std::vector<Entry> entries = {};  // the last used at the end
  CompileCounts published = {};

  // Of the busy thread alone.
  std::vector<std::shared_ptr<KernelSet>> sets = {};  // the last used at the end
  CompileCounts counts = {};

  /// Whether it is there.
  bool find(const Values& values, Compilation& found) {
    auto known = std::ranges::find(entries, values, &Entry::sizes);
    if (known == entries.end()) return false;
    std::rotate(known, known + 1, entries.end());
    found = entries.back().made;
    return true;
  }
  std::shared_ptr<KernelSet> keep(std::shared_ptr<KernelSet> set) {
    if (sets.size() == kMostSets) sets.erase(sets.begin());
    return sets.emplace_back(std::move(set));
  }
  void keep(Values values, Compilation made) {
    std::lock_guard lock(mutex);
    if (entries.size() == kMostPlans) entries.erase(entries.begin());
    entries.push_back({std::move(values), std::move(made)});
    published = counts;
  }
};

/// One thread at a time makes a plan. A turn ends when that fails, too: no thread waits
/// permanently.
class CompiledGraph::Made::Turn {
 public:
  /// Gives what is in `known` if it is there by now, or else the turn to this thread.
  Turn(Made& made, const Values& values, Compilation& known) : made_(made) {
    std::unique_lock lock(made.mutex);
    wait_or_stop(made.free, lock, [&] { return made.find(values, known) || !made.busy; });
    if (!known.plan) mine_ = made.busy = true;
  }
  ~Turn() {
    if (!mine_) return;
    std::lock_guard lock(made_.mutex);
    made_.busy = false;
    made_.free.notify_all();
  }
  Turn(const Turn&) = delete;

 private:
  Made& made_;
  bool mine_ = false;
};

CompiledGraph::CompiledGraph(Graph graph, CompileOptions options)
    : graph_(std::move(graph)), options_(std::move(options)) {
  make_lasting(graph_);
  if (names_devices(graph_)) placed_ = compiler_for(graph_).place(graph_, options_);
}

CompiledGraph::CompiledGraph(Graph graph, CompileOptions options, std::vector<KernelSet> sets)
    : graph_(std::move(graph)), options_(std::move(options)), given_(std::move(sets)) {
  make_lasting(graph_);
}

CompiledGraph::~CompiledGraph() = default;

Compilation CompiledGraph::compilation(std::span<const Binding> sizes) const {
  Made::Values values;
  for (const Binding& b : sizes) values.push_back(b.value);
  Made& made = *made_;
  Compilation found;
  Made::Turn turn(made, values, found);
  if (found.plan) return found;
  CompileCounts before = made.counts;
  double ms = 0;
  {
    bool watched = has_watcher(EventKind::compile_starting) && options_.effort != Effort::e0;
    std::optional<CompileEvents> events;
    if (watched) events.emplace(hash_text(to_text(graph_)), graph_.name);
    Stopwatch all(ms);
    found = make(made, sizes);
  }
  if (debug_log_on) debug_plan(graph_, sizes, before, made.counts, ms);
  found.sizes.assign(sizes.begin(), sizes.end());
  made.keep(std::move(values), found);
  return found;
}

Compilation CompiledGraph::make(Made& made, std::span<const Binding> sizes) const {
  if (placed_) {
    ++made.counts.plans;
    return placed_->compilation(sizes);
  }
  if (options_.effort == Effort::e0) {
    ++made.counts.plans;
    InternScope scope;
    return interpreted(substitute(graph_, replacements(sizes)), options_);
  }
  if (options_.memory_limit) return plan_that_fits(made, sizes);
  std::shared_ptr<KernelSet> set = kernels_for(made, sizes);
  return {set, plan_of(*set, sizes, made.counts), {}};
}

std::shared_ptr<KernelSet> CompiledGraph::kernels_for(Made& made,
                                                      std::span<const Binding> sizes) const {
  auto& sets = made.sets;
  auto known = std::ranges::find_if(sets, [&](const auto& set) { return set->serves(sizes); });
  if (known != sets.end()) {
    std::rotate(known, known + 1, sets.end());
    return sets.back();
  }
  auto given = std::ranges::find_if(given_, [&](const KernelSet& s) { return s.serves(sizes); });
  return made.keep(given == given_.end() ? made_for(sizes, made.counts)
                                         : std::make_shared<KernelSet>(*given));
}

Compilation CompiledGraph::plan_that_fits(Made& made, std::span<const Binding> sizes) const {
  if (made.sets.empty())
    for (const KernelSet& set : given_) made.keep(std::make_shared<KernelSet>(set));
  kernels_for(made, sizes);  // there is one now
  int64_t plans = made.counts.plans, limit = options_.memory_limit, least = INT64_MAX;
  Compilation best;
  std::shared_ptr<KernelSet> plain;
  for (const auto& set : made.sets) {
    if (!set->serves(sizes)) continue;
    auto plan = plan_near(*set, limit, sizes, made.counts);
    if (int64_t needed = plan ? memory_needed(*plan) : INT64_MAX; needed < least)
      least = needed, best = {set, std::move(plan), {}};
    // What computes values again has more ops.
    if (!plain || set->graph.ops.size() < plain->graph.ops.size()) plain = set;
    if (least <= limit) break;
  }
  if (least > limit)
    if (auto set = fitted(*plain, limit, sizes, best.plan, made.counts))
      best.set = made.keep(std::move(set));
  if (!best.plan) best = {plain, plan_of(*plain, sizes, made.counts), {}};
  made.counts.plans = plans + 1;
  return best;
}

std::unique_ptr<KernelSet> CompiledGraph::made_for(std::span<const Binding> sizes,
                                                   CompileCounts& counts) const {
  if (!compiler)
    fail(Hint{"narrow the ranges, or load the file with the whole library"},
         "run: the file has no kernels for {}, and the runtime has no compiler", text_of(sizes));
  LastingScope lasting;  // the set is kept
  CompileOptions options = options_;
  restore_constants(graph_, given_, options.constants);
  auto set = compiler->make_kernel_set(graph_, options, sizes, counts, {});
  if (set->serves(sizes)) return set;
  // Some tensor is empty: the sizes that make it so have a graph of their own, for all values of
  // the others if it serves them.
  for (const std::vector<Binding>& fixed :
       {emptying(*set, sizes), std::vector<Binding>(sizes.begin(), sizes.end())}) {
    std::vector<SizeGuard> exact;
    for (const Binding& b : fixed)
      exact.push_back({SizeGuard::Kind::equal, b.symbol, b.value, true, {}});
    Graph graph = substitute(graph_, replacements(fixed));
    set = compiler->make_kernel_set(graph, options, sizes, counts, std::move(exact));
    if (set->serves(sizes)) break;
  }
  return set;
}

std::vector<KernelSet> CompiledGraph::sets() const {
  Made& made = *made_;
  std::unique_lock lock(made.mutex);
  made.free.wait(lock, [&] { return !made.busy; });  // the busy thread changes them
  std::vector<KernelSet> sets = given_;
  for (const auto& set : made.sets)
    if (set->source) sets.push_back(*set);
  return sets;
}

CompileCounts CompiledGraph::counts() const {
  Made& made = *made_;
  std::lock_guard lock(made.mutex);
  return made.published;
}

}  // namespace tn
