#pragma once
// The parts of a graph that are written for one worker: between `to_local` and `from_local`.
#include "ir/graph.h"
#include "ir/mesh_layout.h"

namespace tn::sharding {

/// By op: whether it belongs to one. Its values are a worker's own, so no layout spreads there, and
/// a worker runs it as it is.
std::vector<bool> ops_of_one_worker(const Graph& graph);

/// Whether there is one in the graph, or in the control flow there.
bool has_borders(const Graph& graph);

/// What a value is a sum of over all workers along axes: `vary(all_sum(x))`, which is how
/// cotangents leave a function of one worker.
struct SumOfWorkers {
  Val operand = kNoVal;
  uint32_t axes = 0;     // of the mesh
  std::vector<int> ops;  // that make the sum, and nothing else
};
/// `along`: the axes that count. `uses`: of every value.
SumOfWorkers sum_of_workers(const Graph& graph, const Mesh& mesh, Val v, uint32_t along,
                            const std::vector<int>& uses);

/// The layout that a `to_local` or `from_local` names, of its operand or its result.
Layout layout_of_parts(const Graph& graph, const GraphOp& op, const Mesh& mesh);

}  // namespace tn::sharding
