#pragma once
// Times of steps on a GPU, for those who watch (base/events.h): measured by events of the driver
// around the launches of each.
#include <vector>

#include "backend/cuda/gpu.h"
#include "base/events.h"
#include "plan/plan.h"

namespace tn::cuda {

class StepTimes {
 public:
  /// Waits for what is under way: times count from then on.
  explicit StepTimes(Gpu& gpu);
  ~StepTimes();
  StepTimes(const StepTimes&) = delete;

  /// Around the launches of a step, while they are submitted.
  void begin(const Step& step, Stream stream);
  void end(Stream stream);
  /// Waits for work, and reports the steps until then.
  void tell(uint64_t work);

 private:
  struct Timed {
    const Step* step;
    EventHandle began, ended;
  };
  EventHandle recorded(Stream stream) const;
  uint64_t nanoseconds_between(EventHandle from, EventHandle to) const;
  void forget();

  Gpu& gpu_;
  EventHandle origin_ = nullptr;
  uint64_t origin_time_ = 0;  // as event_time() says
  std::vector<Timed> steps_;
};

/// Reports a copy from construction to destruction.
class CopyTime {
 public:
  CopyTime(const char* name, size_t bytes) {
    if (has_watcher(EventKind::step)) begin(name, bytes);
  }
  ~CopyTime() {
    if (event_.began) post_span(event_);
  }
  CopyTime(const CopyTime&) = delete;

 private:
  void begin(const char* name, size_t bytes) {
    event_ = Event(EventKind::step, name, event_time());
    event_.value = bytes;
  }
  Event event_{EventKind::step, "", 0};
};

}  // namespace tn::cuda
