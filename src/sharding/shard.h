#pragma once
// The sharding pass: from a graph, a mesh and the layouts of some values to the graph of a worker.
#include "sharding/partition.h"

namespace tn::sharding {

struct Sharded {
  std::vector<Layout> layouts;  // of every value of the global graph
  Partitioned local;
};

/// Composites that no library kernel computes whole are expected to be expanded.
Sharded shard(const Graph& graph, const Mesh& mesh, std::span<const Constraint> constraints,
              Decisions* decisions = nullptr);

}  // namespace tn::sharding
