#pragma once
// Parts that devices plan themselves, for reports.
#include "compiler/compile_graph.h"
#include "runtime/device.h"
#include "sharding/traffic.h"

namespace tn {

class PlannedLater : public DevicePart {
 public:
  /// What it was planned as last; for inputs that lie whole if it has not run.
  virtual Compilation compilation() const = 0;
  /// What was decided for it before it was compiled, for a reader and one by one.
  virtual std::string text() const = 0;
  virtual Decisions decisions() const = 0;
  /// The collectives of a worker.
  virtual std::vector<sharding::Traffic> traffic() const = 0;
};

/// Null where the compiler has planned it.
inline const PlannedLater* planned_later(const Plan& plan) {
  return static_cast<const PlannedLater*>(plan.unplanned.get());
}
/// What runs, on every worker of the device.
inline std::shared_ptr<const Plan> plan_that_runs(const std::shared_ptr<const Plan>& plan) {
  const PlannedLater* later = planned_later(*plan);
  return later ? later->compilation().plan : plan;
}

}  // namespace tn
