#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>

namespace tn {

/// What a compilation is at.
enum class CompileStage : uint8_t { waiting, tracing, passes, fusion, lowering, code, memory };

/// Where this thread reports its stage to a waiting thread; null: no thread waits.
inline thread_local std::atomic<CompileStage>* told_stage = nullptr;

/// Adds the milliseconds of its lifetime to a total and reports the current stage.
class Stopwatch {
 public:
  explicit Stopwatch(double& total) : total_(&total), start_(Clock::now()) {}
  /// Null: the stage is not timed, and the clock is not read.
  Stopwatch(double* total, CompileStage stage) : total_(total), told_(told_stage) {
    if (told_) before_ = told_->exchange(stage);
    if (total_) start_ = Clock::now();
  }
  ~Stopwatch() {
    if (total_) *total_ += std::chrono::duration<double, std::milli>(Clock::now() - start_).count();
    if (told_) told_->store(before_);
  }
  Stopwatch(const Stopwatch&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  double* total_;
  std::atomic<CompileStage>* told_ = nullptr;
  CompileStage before_ = CompileStage::waiting;
  Clock::time_point start_ = {};
};

}  // namespace tn
