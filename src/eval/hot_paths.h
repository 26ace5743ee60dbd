#pragma once
// Hot paths: sequences of ops that run often are compiled automatically.
//
//   cold ── seen often enough ──► queued ──► compiling ──► trial ──► kept
//                                                │           └─────► dropped: it was not faster
//                                                └─► failed: reported once, not retried
//
// The interpreter runs until a compiled plan is ready. Both give the same bits, so only the run
// time changes.
#include <atomic>
#include <optional>

#include "compiler/compile_graph.h"
#include "ir/walk.h"
#include "tenon/hot_paths.h"

namespace tn {

/// One sequence, shared by the cache of plans and the thread that compiles it.
class HotPath : public std::enable_shared_from_this<HotPath> {
 public:
  using PlanRef = std::shared_ptr<const Plan>;
  struct Choice {
    PlanRef plan;
    bool measured;          // the caller must report its run time to `ran`
    bool alone = false;     // it runs on the calling thread
    bool is_short = false;  // as measured: see kShortSeconds
  };
  /// The values of a run, to choose the fastest way on.
  struct Values {
    std::vector<Bound> inputs;
    std::vector<Scalar> scalars;
  };

  HotPath(uint64_t hash, const Walk& walk, std::string region = {});
  ~HotPath();

  /// Counts a run. True: it is to be compiled now, by `compile`.
  bool is_due(const HotPathPolicy& policy);
  /// In the background, or (the policy says `always`) before it returns.
  /// With `values`, what can be done in several ways is measured on them: see autotune.h.
  void compile(Graph graph, CompileOptions options, const HotPathPolicy& policy,
               std::optional<Values> values = {});
  /// What to run this time.
  Choice choose(const PlanRef& interpreted, const HotPathPolicy& policy);
  /// How long a run took, of the compiled plan or the interpreted one.
  void ran(const Plan& plan, double seconds);

  HotPathInfo info() const;
  /// In a child of fork: the thread that was to compile it is not there.
  void forget_thread();

 private:
  void make_plan(const Graph& graph, const CompileOptions& wanted,
                 const std::optional<Values>& values);
  /// Instead of `make_plan`.
  void refuse(std::string reason);
  bool stays_cold(int64_t count, const HotPathPolicy& policy) const;
  bool may_compile();
  void set_unproven(bool unproven);
  void judge(std::string& line);

  const uint64_t hash_, family_;
  const std::string sequence_, types_, region_;
  // Asked at every flush, without a lock.
  std::atomic<HotPathStatus> status_ = HotPathStatus::cold;
  std::atomic<int64_t> count_ = 0;
  // Guarded by the one lock of all of them.
  int trials_ = 0, baselines_ = 0;  // measured runs, compiled and interpreted
  bool in_turns_ = false;      // it seemed slower: both are measured again, one after the other
  bool compiled_last_ = true;  // of the two
  double interpreted_ = 0, compiled_ = 0, compile_ = 0;  // seconds; the least of some runs
  bool unproven_ = false;                                // counts among those not judged
  PlanRef plan_;  // it, how it runs and its time do not change once `status_` is `kept`
  bool alone_ = false;
  std::string reason_;
};

/// Before the first flush that may compile something, not in the middle of it.
void prepare_hot_paths();

}  // namespace tn
