#pragma once
// Compiled: a function of tensors, traced for one combination of argument types.
#include <mutex>

#include "base/at_fork.h"
#include "base/events.h"
#include "compiler/compile_graph.h"
#include "eval/autotune.h"
#include "functions/deadline.h"
#include "functions/pattern.h"
#include "functions/traced.h"
#include "observe/explain.h"
#include "plan/run_places.h"
#include "tenon/compile.h"

namespace tn {

/// The effort behind an `optimization_level`; fails for one that does not exist.
Effort effort_of(int optimization_level);

/// Options of runs.
struct RunDemands {
  int64_t memory_limit = 0;    // bytes a plan may need; 0: any number
  bool check = false;          // the interpreter runs beside, and results are compared
  double timeout = 0;          // seconds to wait for a plan; 0: as long as it takes
  bool timeout_fails = false;  // else the interpreter runs until the plan is ready
  bool keeps_lock = false;     // the host's, while a short plan runs: calls cost less
  bool tunes = false;          // what can be done in several ways is measured, before the first run
};

/// By argument: whether what is computed from it is kept for backward(), and whether its gradient
/// is refused; at the end, whether anything is kept. A trace serves calls that have these in common
/// with the one it was made for.
std::vector<uint8_t> watching(std::span<const Tensor> args);

class Compiled {
 public:
  /// Runs `f` on parameters like `like`, tensors or numbers, of the types of `pattern`, and keeps
  /// what it records. A failure of `f` leaves nothing behind.
  Compiled(const Function& f, std::span<const Tensor> like, Pattern pattern, CompileOptions options,
           RunDemands demands = {});

  /// Whether it serves arguments of these types here; then `sizes` has the values of its symbols.
  /// Types of the last arguments may be left out where they are known to be right.
  bool takes(std::span<const TypeRef> types, std::vector<Binding>& sizes) const;
  /// Runs the plan for arguments that it takes. Under a transform the graph is recorded instead, as
  /// one op. Any number of threads may call at once. Donated arguments are null afterwards, and
  /// their memory is used where it has no other holder; they are there again when a run fails
  /// before it has written there.
  Tensors operator()(std::span<Tensor> args, std::span<const Binding> sizes) const;
  /// Sets, before the first run, which arguments are donated. Ops with effects may fail part-way,
  /// and checked runs are repeated by the interpreter: then nothing is donated.
  void donate(std::vector<bool> arguments);
  /// The policy of mixed precision that it was traced under.
  DType narrow() const { return narrow_; }
  Products products() const { return options_.products; }
  /// Where it was traced to make tensors from nothing.
  Device made_at() const { return made_at_; }
  /// Whether arguments are needed after the call, so that they cannot be donated.
  bool keeps(std::span<const Tensor> args) const {
    return is_recorded(args) || traced_.differentiable;
  }
  /// Whether leaves of backward() are behind what a call computes, and no ops will lead there: what
  /// lead_to_lost_leaves says of arguments and of what the function takes from outside, or
  /// parameters of modules that it calls, which would have become leaves.
  bool loses_leaves(std::span<const Tensor> args) const;
  /// Of the arguments that it was traced for.
  const std::vector<uint8_t>& watched() const { return watched_; }
  /// The types it serves, and what else must hold of sizes.
  const Pattern& pattern() const { return pattern_; }
  const std::vector<SizeGuard>& guards() const { return guards_; }
  /// All assumptions about sizes that the trace made.
  const std::vector<SizeGuard>& assumed() const { return traced_.guards; }
  /// It captures values of an enclosing trace, so it is valid only inside that trace.
  bool is_bound() const { return traced_.bound; }
  /// Adds what compiling it took.
  void count(CallStats& stats) const;
  /// A stage of the compilation as text.
  std::string show(std::string_view stage) const;
  /// As a Python file with the function `name`; `inputs` are names of its first arguments.
  std::string source(std::string_view target, std::string_view name,
                     std::span<const std::string> inputs) const;
  /// What a run needs.
  MemoryReport memory() const;
  /// A report of its compilation; the caller adds why it was traced.
  Explanation explain(std::span<const Binding> sizes) const;

 private:
  class GivenAway;
  bool is_recorded(std::span<const Tensor> args) const;
  Tensors record(std::span<const Tensor> args, std::span<const Binding> sizes) const;
  const CompiledGraph& code() const;
  /// What calls with some sizes need.
  struct Ready {
    std::vector<int64_t> sizes;
    std::shared_ptr<const Plan> plan;
    std::vector<TypeRef> types;              // of the results
    OpListRef ops;                           // for watchers of events
    RunPlaces places;                        // of the trace
    bool together = false;                   // other processes run it too
    bool lasts = true;                       // false: a better plan is being made
    bool alone = false;                      // it runs on the calling thread
    mutable std::atomic<float> seconds = 1;  // of the run that was measured last
    mutable std::atomic<uint32_t> runs = 0;

    bool is_short() const;
  };
  void run_ready(const Ready& ready, bool keeps_lock, std::span<const Bound> in,
                 std::span<Bound> out, bool& overwritten) const;
  std::shared_ptr<const Ready> ready(std::span<const Binding> sizes) const;
  std::shared_ptr<const Ready> make_ready(std::span<const Binding> sizes) const;
  /// Fails if a part needs more than the limit. Devices that plan parts themselves check those.
  void check_memory(const Plan& plan) const;
  Deadline::Found plan(std::span<const Binding> sizes) const;
  std::shared_ptr<const Plan> interpreted_plan(std::span<const Binding> sizes) const;
  /// Whether other processes run it at the same time: see eval/run_together.h.
  bool is_together() const;
  void check(std::span<const Bound> in, std::span<const Bound> out,
             std::span<const Binding> sizes) const;
  void look_at(std::span<const Bound> in, std::span<const Bound> out,
               std::span<const Binding> sizes) const;
  void run_checked(std::span<const Bound> in, std::span<Bound> out,
                   std::span<const Binding> sizes) const;
  CompileOptions options() const;
  std::shared_ptr<const Ready> known_ready(std::span<const Binding> sizes) const;
  void tune(std::span<const Bound> in, std::span<const Binding> sizes) const;
  void settle_sizes();

  Traced traced_;
  CompileOptions options_;
  Pattern pattern_;
  std::vector<uint8_t> watched_;
  std::vector<SizeGuard> guards_;  // what the pattern does not say
  RunDemands demands_;
  DType narrow_;
  Device made_at_;
  bool makes_leaves_ = false;  // of parameters
  mutable Deadline deadline_;
  mutable std::optional<Tuned> tuned_choice_;  // what turned out to be fastest
  mutable std::shared_ptr<const CompiledGraph> code_;
  mutable std::atomic<bool> has_code_ = false;
  mutable CompileCounts before_;  // of code that others made
  struct Shared {
    std::once_flag tuned, compiled, asked_together;
    bool is_together = false;
    std::mutex mutex;
    std::shared_ptr<const Ready> ready;  // of the last call
  };
  // The same where sizes do not vary: it serves every call, without a lock.
  mutable std::shared_ptr<const Ready> fixed_;
  mutable std::atomic<const Ready*> has_fixed_ = nullptr;
  PerProcess<Shared> shared_;  // a child of fork has not the thread that compiles
};

}  // namespace tn
