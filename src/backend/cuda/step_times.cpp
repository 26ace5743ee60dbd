#include "backend/cuda/step_times.h"

#include <algorithm>
#include <utility>

namespace tn::cuda {

StepTimes::StepTimes(Gpu& gpu) : gpu_(gpu) {
  gpu_.wait_for_all();
  uint64_t work =
      gpu_.give([&](Stream stream) { origin_ = recorded(stream); }, [] { return "a clock"; });
  gpu_.wait(work);
  origin_time_ = event_time();
}

StepTimes::~StepTimes() {
  forget();
  gpu_.driver.cuEventDestroy_v2(origin_);
}

void StepTimes::forget() {
  for (const Timed& timed : std::exchange(steps_, {})) {
    gpu_.driver.cuEventDestroy_v2(timed.began);
    if (timed.ended) gpu_.driver.cuEventDestroy_v2(timed.ended);
  }
}

EventHandle StepTimes::recorded(Stream stream) const {
  EventHandle made = nullptr;
  check(gpu_.driver, gpu_.driver.cuEventCreate(&made, kEventWithTiming), "cuEventCreate");
  check(gpu_.driver, gpu_.driver.cuEventRecord(made, stream), "cuEventRecord");
  return made;
}

void StepTimes::begin(const Step& step, Stream stream) {
  steps_.push_back({&step, recorded(stream), nullptr});
}

void StepTimes::end(Stream stream) { steps_.back().ended = recorded(stream); }

uint64_t StepTimes::nanoseconds_between(EventHandle from, EventHandle to) const {
  float milliseconds = 0;
  check(gpu_.driver, gpu_.driver.cuEventElapsedTime(&milliseconds, from, to), "cuEventElapsedTime");
  return static_cast<uint64_t>(std::max(milliseconds, 0.F) * 1e6);
}

void StepTimes::tell(uint64_t work) {
  gpu_.wait(work);
  if (!steps_.empty())  // the driver looks at events for itself
    check(gpu_.driver, gpu_.driver.cuEventSynchronize(steps_.back().ended), "cuEventSynchronize");
  for (const Timed& timed : steps_) {
    Event event(EventKind::step, timed.step->name,
                origin_time_ + nanoseconds_between(origin_, timed.began));
    event.place = timed.step->loc.place();
    event.nanoseconds = nanoseconds_between(timed.began, timed.ended);
    if (has_watcher(EventKind::step)) post(event);
  }
  forget();
}

}  // namespace tn::cuda
