#pragma once
// The sharding pass: from a graph, a mesh and the layouts of some values to the graph of a worker.
#include "sharding/partition.h"

namespace tn::sharding {

struct Sharded {
  std::vector<Layout> layouts;       // of every value of the global graph
  std::vector<uint32_t> parameters;  // of its outputs: axes that parameters brought
  Partitioned local;
};

/// Composites that no library kernel computes whole are expected to be expanded. Constraints are
/// taken before those of the ops `shard` in the graph.
Sharded shard(const Graph& graph, const Mesh& mesh, std::span<const Constraint> constraints,
              Decisions* decisions = nullptr, const Given& given = {});

}  // namespace tn::sharding
