#pragma once
// One run of a plan on a GPU.
#include <optional>

#include "backend/cuda/plan_state.h"
#include "backend/cuda/step_times.h"
#include "backend/launcher.h"

namespace tn::cuda {

class PlanRun {
 public:
  PlanRun(Gpu& gpu, const std::shared_ptr<const PlacedPlan>& placed, PlanState& state,
          const RunMemory& memory, const RunValues& values)
      : gpu_(gpu), placed_(placed), state_(state), memory_(memory), values_(values) {}

  /// The number of the work that is done last. Waits for the GPU only where a step needs the host.
  /// `overwritten`, which may be null, is set before something writes in memory of inputs.
  uint64_t run(bool* overwritten);

 private:
  void run_step(size_t number);
  void run_unwatched(size_t number);
  void run_on_host(const Step& step);
  size_t bytes_of(int32_t buffer) const;
  Address address_of(int32_t buffer) const {
    return reinterpret_cast<Address>(values_.address[static_cast<size_t>(buffer)]);
  }
  std::function<std::string()> name_of_plan() const;

  Gpu& gpu_;
  const std::shared_ptr<const PlacedPlan>& placed_;
  PlanState& state_;
  const RunMemory& memory_;
  RunValues values_;
  uint64_t last_ = 0;
  std::optional<StepTimes> times_;  // where someone watches
};

}  // namespace tn::cuda
