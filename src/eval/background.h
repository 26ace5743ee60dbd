#pragma once
// Threads for work that no caller waits for.

#include "base/at_fork.h"
#include "tenon/callback.h"

namespace tn {

/// A thread that runs jobs in order. Jobs do not throw, and call stop_if_asked() at intervals
/// (base/interrupt.h). A forked child starts without one.
class Worker {
 public:
  /// A positive niceness gives way to the program's own threads.
  explicit Worker(int nicer) : nicer_(nicer) {}
  /// Enqueues a job. False: the worker has ended, and the job is dropped.
  bool add(Callback<void()> job);
  /// Waits for all jobs. The user may interrupt this, which cancels the current job.
  void wait();
  /// The current job.
  void stop();
  /// Cancels the current job, waits for it, drops the others and ends the thread.
  void end();

 private:
  struct State;
  struct Made {
    State* state;
    Made();
  };
  const int nicer_;
  PerProcess<Made> made_;
};

/// Of evaluations and of compilations: two threads, because an evaluation must not wait for a
/// compilation, and because a thread that gave way with its niceness cannot take that back. The end
/// of the process ends both, as does a host language that ends before.
Worker& evaluating_worker();
Worker& compiling_worker();
void stop_background();

/// What the code generator keeps for the whole process is made before the first job that compiles,
/// which calls this, and outlives the thread.
void warm_up_compiler();

}  // namespace tn
