#pragma once
// The parts of a graph that are written for one worker: between `to_local` and `from_local`.
#include "ir/graph.h"
#include "ir/mesh_layout.h"

namespace tn::sharding {

/// By op: whether it belongs to one. Its values are a worker's own, so no layout spreads there, and
/// a worker runs it as it is.
std::vector<bool> ops_of_one_worker(const Graph& graph);

/// The layout that a `to_local` or `from_local` names, of its operand or its result.
Layout layout_of_parts(const Graph& graph, const GraphOp& op, const Mesh& mesh);

}  // namespace tn::sharding
