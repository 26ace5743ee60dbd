#include "compiler/fitting.h"

#include <algorithm>
#include <numeric>

#include "base/debug_log.h"
#include "base/interrupt.h"
#include "compiler/lower_fused.h"
#include "compiler/op_cost.h"
#include "compiler/set_maker.h"
#include "compiler/step_order.h"
#include "compiler/stopwatch.h"
#include "ir/interned.h"
#include "runtime/memory_use.h"

namespace tn {
namespace {

/// Budgets tried for one order.
constexpr int kMostRounds = 10;
/// Budgets this close are one.
constexpr double kClose = 0.06;

/// The items as steps over the stored values, for those who order steps.
Plan sketch(const StoredValues& values, int inputs) {
  Plan plan;
  plan.inputs = inputs;
  for (const StoredValue& value : values.all) {
    if (value.kept) plan.outputs.push_back({inputs + static_cast<int32_t>(plan.bytes.size()), 0});
    plan.bytes.push_back(value.bytes);
  }
  for (const StoredValues::Item& item : values.items) {
    Step step{KernelStep{}};
    for (int r : item.reads) step.buffers.push_back(inputs + r);
    for (int w : item.writes) {
      step.writes.push_back(static_cast<int32_t>(step.buffers.size()));
      step.buffers.push_back(inputs + w);
    }
    step.effect = item.effect;
    plan.steps.push_back(std::move(step));
  }
  return plan;
}

class Fitter {
 public:
  Fitter(const KernelSet& set, std::span<const Binding> sizes, int64_t target)
      : set_(set), sizes_(sizes), target_(target), values_(stored_values(set, sizes)) {}

  std::unique_ptr<KernelSet> run() {
    std::vector<int32_t> lean = least_growth_order(sketch(values_, set_.graph.inputs()));
    search(lean);
    if (!fits(best_)) {
      std::vector<int32_t> written(values_.items.size());
      std::iota(written.begin(), written.end(), 0);
      if (written != lean) search(written);
    }
    if (best_.set) report(*best_.set);
    return std::move(best_.set);
  }

 private:
  /// Adds what was decided before, other than by fusion, and what was chosen.
  void report(KernelSet& made) const {
    Decisions decisions = set_.decisions;
    std::erase_if(decisions, [](const Decision& d) { return d.pass == "fuse"; });
    double before = multiply_adds(set_.graph), now = multiply_adds(best_.made.graph);
    decisions.push_back(
        {"memory", true,
         format("{} more ops, {:.1f} % more multiply-adds",
                best_.made.graph.ops.size() - ops_kept(),
                100 * (now - before) / std::max(1.0, before)),
         format("with memory_limit a run needs {}", bytes_text(static_cast<size_t>(best_.peak)))});
    for (const StoredValue& value : values_.all) report(value, decisions);
    made.decisions.insert(made.decisions.begin(), decisions.begin(), decisions.end());
  }

  struct Try {
    std::unique_ptr<KernelSet> set = nullptr;  // null: none yet
    int64_t peak = 0;                          // of its plan
    Residence residence = {};
    Rewritten made = {};
  };

  bool fits(const Try& one) const { return one.set && one.peak <= target_; }
  bool is_better(const Try& one) const {
    if (!best_.set) return true;
    if (fits(one) != fits(best_)) return fits(one);
    return fits(one) ? one.residence.cost < best_.residence.cost : one.peak < best_.peak;
  }

  /// The largest budget of stored values with which the plan fits. What else a plan needs, and what
  /// it saves by writing in place, is known when it is made.
  void search(std::span<const int32_t> order) {
    Try all = attempt(order, INT64_MAX);
    auto most = static_cast<double>(all.residence.peak), high = most, low = 0.0;
    double budget = high * static_cast<double>(target_) / static_cast<double>(all.peak);
    double least = 0;  // budget that was too small to keep to, the largest of those tried
    bool done = fits(all);
    keep(std::move(all));
    for (int n = 0; n < kMostRounds && !done; ++n) {
      Try one = attempt(order, static_cast<int64_t>(budget));
      if (static_cast<double>(one.residence.peak) > budget) least = std::max(least, budget);
      auto excess = static_cast<double>(one.peak - target_);
      (fits(one) ? low : high) = budget;
      keep(std::move(one));
      budget = low > 0 ? (low + high) / 2 : std::clamp(high - excess, 0.5 * high, 0.9 * high);
      done = high - low < kClose * high;
    }
    if (least > 0 && !fits(best_)) descend(order, least, most);
  }

  /// Nothing fits: the least that is needed, with a budget between one that is too small to keep
  /// to, where values are recomputed in vain, and one that recomputes nothing.
  void descend(std::span<const int32_t> order, double low, double high) {
    for (int n = 0; n < kMostRounds && high - low >= kClose * high; ++n) {
      double budget = (low + high) / 2;
      Try one = attempt(order, static_cast<int64_t>(budget));
      (static_cast<double>(one.residence.peak) > budget ? low : high) = budget;
      keep(std::move(one));
    }
  }

  double multiply_adds(const Graph& graph) const {
    double sum = 0;
    for (const GraphOp& op : graph.ops)
      sum += work_of(graph, op, sizes_, set_.options.target).multiply_adds;
    return sum;
  }

  /// Ops of the set's graph that are there at all.
  size_t ops_kept() const {
    std::vector<int> origins = best_.made.origin;
    std::ranges::sort(origins);
    return static_cast<size_t>(std::unique(origins.begin(), origins.end()) - origins.begin());
  }

  void report(const StoredValue& value, Decisions& decisions) const {
    int maker = set_.producer[static_cast<size_t>(value.value)];
    int64_t times = std::ranges::count(best_.made.origin, maker);
    if (times < 2) return;
    const GraphOp& op = set_.graph.ops[static_cast<size_t>(maker)];
    decisions.push_back({"memory", true,
                         format("compute {} {} {}", op.op->name,
                                *set_.graph.types[static_cast<size_t>(value.value)],
                                times == 2 ? "again" : format("{} times", times)),
                         format("it takes {} ops, and {} are free meanwhile", value.ops.size(),
                                bytes_text(static_cast<size_t>(value.bytes))),
                         op.loc});
  }

  void keep(Try one) {
    if (is_better(one)) best_ = std::move(one);
  }

  Try attempt(std::span<const int32_t> order, int64_t budget) {
    stop_if_asked();
    Try one;
    one.residence = reside(values_, order, budget);
    one.made = rewrite(set_.graph, values_, one.residence.turns);
    one.set = make_rewritten_set(set_, one.made, sizes_);
    one.peak = memory_of(*one.set, sizes_);
    debug_compile("memory: with {} for values a run needs {}; computing again takes {:.3f} ms",
                  one.residence.peak, one.peak, one.residence.cost * 1e-6);
    return one;
  }

  const KernelSet& set_;
  std::span<const Binding> sizes_;
  const int64_t target_;
  StoredValues values_;
  Try best_;
};

}  // namespace

std::unique_ptr<KernelSet> make_fitting_set(const KernelSet& set, std::span<const Binding> sizes,
                                            int64_t target, CompileCounts& counts) {
  LastingScope lasting;
  Stopwatch memory(&counts.memory_ms, CompileStage::memory);
  return Fitter(set, sizes, target).run();
}

}  // namespace tn
