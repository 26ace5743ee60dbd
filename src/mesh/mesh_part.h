#pragma once
// A part of a graph that runs on a mesh. It is divided and planned once for every way in which the
// inputs of its runs are divided.
#include <mutex>
#include <optional>
#include <vector>

#include "compiler/device_part.h"
#include "ir/interned.h"
#include "mesh/mesh_world.h"
#include "mesh/origins.h"
#include "mesh/worker_events.h"
#include "runtime/device.h"
#include "sharding/traffic.h"

namespace tn::mesh {

/// What workers run, all of them the same.
struct WorkerPlan {
  std::vector<const Division*> in, out;
  Compilation made;                        // nothing yet where no worker is here
  Decisions decisions;                     // of the pass
  std::string local;                       // the graph of a worker, before its passes
  std::vector<sharding::Traffic> traffic;  // its collectives, after them
  OpListRef ops;                           // what watchers are told
  int64_t result_bytes = 0;                // of a worker
  int64_t needed = 0;                      // bytes that a run takes, of a worker
  bool compiled = false;                   // as machine code
  std::vector<Meeting> meetings;           // of processes
};

class MeshPart : public PlannedLater {
 public:
  MeshPart(MeshWorld& world, const Graph& graph, const CompileOptions& options);

  /// The plan of a run, for inputs, then constants, that are divided so. Fails if a worker needs
  /// more than the memory limit.
  std::shared_ptr<const WorkerPlan> plan_to_run(std::span<const Division* const> in) const;
  /// The place of an op that reads an input, or a constant behind the inputs.
  Loc reader(size_t input) const { return readers_[input]; }
  /// Of processes, else null.
  const GraphOrigins* origins() const { return origins_ ? &*origins_ : nullptr; }
  const Graph& graph() const { return graph_; }
  TypeRef output(size_t i) const { return graph_.types[static_cast<size_t>(graph_.outputs[i])]; }
  Compilation compilation() const override { return last()->made; }
  Decisions decisions() const override { return last()->decisions; }
  std::string text() const override;
  std::vector<sharding::Traffic> traffic() const override { return last()->traffic; }
  MeshWorld& world() const { return world_; }

 private:
  /// The last plan.
  std::shared_ptr<const WorkerPlan> last() const;
  /// `whole`: with what is needed by those who run it, and by reports.
  std::shared_ptr<const WorkerPlan> plan_for(std::span<const Division* const> in, bool whole) const;
  std::shared_ptr<const WorkerPlan> make(std::span<const Division* const> in, bool whole) const;

  MeshWorld& world_;
  Graph graph_;  // composites are expanded
  Held held_;
  CompileOptions options_;
  std::vector<Loc> readers_;               // of inputs
  std::optional<GraphOrigins> origins_;    // of processes
  std::vector<const Division*> expected_;  // of inputs: whole, and constants as they lie
  mutable std::mutex mutex_;
  mutable std::vector<std::shared_ptr<const WorkerPlan>> plans_;  // the last used at the end
};

}  // namespace tn::mesh
