#pragma once
// What a worker of a mesh runs, for watchers.
#include "base/events.h"
#include "ir/graph.h"
#include "runtime/buffer.h"

namespace tn::mesh {

/// The ops of a worker's graph, with the bytes of what each makes.
OpListRef worker_ops(const Graph& graph);

/// Tells that a worker runs these ops on this thread, from construction to destruction.
class WorkerRunEvents {
 public:
  /// `bytes`: of the results.
  WorkerRunEvents(int worker, const OpListRef& ops, int64_t bytes, bool compiled);
  ~WorkerRunEvents();
  WorkerRunEvents(const WorkerRunEvents&) = delete;

 private:
  int before_;  // the worker of this thread
  uint64_t began_ = 0;
  size_t ops_;
  int64_t bytes_;
  bool compiled_;
};

}  // namespace tn::mesh
