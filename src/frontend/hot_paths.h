#pragma once
// Hot paths: what is computed again and again is compiled, by itself.
//
//   cold ── seen often enough ──► queued ──► compiling ──► trial ──► kept
//                                                │           └─────► dropped: it was not faster
//                                                └─► failed: said once, not tried again
//
// The interpreter goes on until a compiled plan is there. Both give the same bits, so nobody can
// tell when that is but by the clock.
#include <memory>
#include <string>

#include "compiler/compile.h"
#include "ir/walk.h"

namespace tn {

struct HotPathPolicy {
  enum class When : uint8_t {
    never,
    hot,    // after `threshold` runs, in the background
    always  // before the first run
  };
  When when = When::never;
  int64_t threshold = 10;
  friend bool operator==(const HotPathPolicy&, const HotPathPolicy&) = default;
};
/// That of the process: at first what TENON_COMPILE, TENON_AUTO_COMPILE and TENON_HOTPATH_THRESHOLD
/// say. Costs a load where it is `never`.
HotPathPolicy hot_path_policy();
void set_hot_path_policy(const HotPathPolicy& policy);

enum class HotPathStatus : uint8_t {
  cold,
  queued,
  compiling,
  trial,    // compiled, being measured
  kept,     // compiled and faster
  dropped,  // compiled and not faster
  failed,
  capped,  // one of too many that differ in types only
};
std::string_view name_of(HotPathStatus status);

/// A sequence of ops that was computed, for people.
struct HotPathInfo {
  uint64_t hash = 0;
  std::string sequence;  // "matmul -> relu -> sum"
  int64_t count = 0;     // how often it was run
  HotPathStatus status = HotPathStatus::cold;
  double interpreted_ms = 0, compiled_ms = 0, compile_ms = 0;  // 0: not measured
  std::string reason;                                          // of a failure, a cap, a drop
};

/// One sequence, shared by the cache of plans and the thread that compiles it.
class HotPath : public std::enable_shared_from_this<HotPath> {
 public:
  using PlanRef = std::shared_ptr<const Plan>;

  HotPath(uint64_t hash, const Walk& walk);

  /// Counts a run. True: it is to be compiled now, by `compile`.
  bool is_due(const HotPathPolicy& policy);
  /// In the background, or (the policy says `always`) before it returns.
  void compile(Graph graph, int runtime_scalars, const HotPathPolicy& policy);
  /// The plan to run this time.
  PlanRef choose(const PlanRef& interpreted) const;
  /// Whether how long runs take still decides something.
  bool measures() const;
  /// How long a run took, of the compiled plan or the interpreted one.
  void ran(const Plan& plan, double seconds);

  HotPathInfo info() const;

 private:
  void make_plan(const Graph& graph, int runtime_scalars);
  void judge();

  const uint64_t hash_, family_;
  const std::string sequence_, types_;
  // Guarded by the one lock of all of them.
  HotPathStatus status_ = HotPathStatus::cold;
  int64_t count_ = 0, trials_ = 0;
  double interpreted_ = 0, compiled_ = 0, compile_ = 0;  // seconds; the least of some runs
  PlanRef plan_;
  std::string reason_;
};

/// Those whose plans are kept, the most frequent first.
std::vector<HotPathInfo> hot_paths();

}  // namespace tn
