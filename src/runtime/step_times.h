#pragma once
// StepTimes: how long the steps of plans take, for those who ask.
#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace tn {

struct Step;  // runtime/plan.h

class StepTimes {
 public:
  struct Entry {
    std::string name;
    uint64_t place;         // of the user's call, as in Step
    double began, seconds;  // since the recording began, and from there
  };

  /// Those of this thread become `times` (null: none); returns what they were. A run takes them, so
  /// that what runs inside a step counts as the step.
  static std::shared_ptr<StepTimes> exchange(std::shared_ptr<StepTimes> times);

  void begin() { began_ = Clock::now(); }
  void end(const Step& step);

  std::vector<Entry> entries;

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point origin_ = Clock::now(), began_;
};

}  // namespace tn
