#include "runtime/step_times.h"

#include <utility>

#include "runtime/plan.h"

namespace tn {

std::shared_ptr<StepTimes> StepTimes::exchange(std::shared_ptr<StepTimes> times) {
  thread_local std::shared_ptr<StepTimes> current;
  return std::exchange(current, std::move(times));
}

void StepTimes::end(const Step& step) {
  using Seconds = std::chrono::duration<double>;
  Clock::time_point now = Clock::now();
  entries.push_back(
      {step.name, step.place, Seconds(began_ - origin_).count(), Seconds(now - began_).count()});
}

}  // namespace tn
