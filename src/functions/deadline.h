#pragma once
// Deadline: compilation in the background, with a limit on how long a call waits for it.
#include <chrono>
#include <future>
#include <mutex>

#include "base/at_fork.h"
#include "base/function_ref.h"
#include "compiler/compile_graph.h"
#include "compiler/stopwatch.h"

namespace tn {

/// The plans of one compiled graph, made by a background thread. Threads may share it.
class Deadline {
 public:
  using PlanRef = std::shared_ptr<const Plan>;
  /// After so many seconds calls fail, or the interpreter runs until the plan is there.
  Deadline(double seconds, bool fails) : seconds_(seconds), fails_(fails) {}

  /// Seconds that tracing took: they count towards the time limit of the first plan.
  void add_tracing(double seconds) { traced_in_ = seconds; }

  struct Found {
    PlanRef plan;
    bool compiled;  // false: not yet
  };
  /// The plan for these sizes if it is ready in time, and what `interpreted` makes otherwise.
  Found plan(const std::shared_ptr<const CompiledGraph>& code, std::span<const Binding> sizes,
             FunctionRef<PlanRef()> interpreted);

 private:
  struct Entry {
    std::vector<Binding> sizes;
    std::shared_future<PlanRef> compiled;
    std::chrono::steady_clock::time_point end;  // no call waits beyond
    std::once_flag once;
    PlanRef interpreted;
    std::atomic<CompileStage> stage = CompileStage::waiting;
  };
  static constexpr size_t kMost = 16;

  std::shared_ptr<Entry> entry_for(const std::shared_ptr<const CompiledGraph>& code,
                                   std::span<const Binding> sizes);

  struct Begun {
    std::mutex mutex = {};
    std::vector<std::shared_ptr<Entry>> entries = {};  // the latest at the end
  };

  const double seconds_;
  std::atomic<double> traced_in_ = 0;
  const bool fails_;
  PerProcess<Begun> begun_;  // a child of fork has not the thread that makes them
};

}  // namespace tn
