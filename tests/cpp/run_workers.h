#pragma once
// The graph of a worker on all workers of a mesh in lockstep, with collectives between them.
#include "ir/mesh_layout.h"
#include "run_graph.h"
#include "sharding/shard.h"

namespace tn {

/// The part of `x` that a worker holds.
Tensor part_of_worker(const Tensor& x, const Mesh& mesh, const Layout& layout, int64_t worker);
/// The tensor of which the workers hold parts; fails where replicas differ.
Tensor joined(const std::vector<Tensor>& parts, const Mesh& mesh, const Layout& layout);

/// The outputs of all workers, from their inputs.
std::vector<Tensors> run_workers(const Graph& graph, const Mesh& mesh,
                                 const std::vector<Tensors>& in);
/// The outputs of a partitioned graph on global inputs, as global tensors.
Tensors run_partitioned(const sharding::Partitioned& made, const Mesh& mesh, const Tensors& in);

/// How often an op occurs.
int count_ops(const Graph& graph, std::string_view name);

/// A case of tests/golden/sharding: lines "mesh data=4" and "%x @[data,-] parameter", then a graph.
/// What comes of it: layouts, the graph of a worker, and what was refused. Both are run.
std::string sharded_text(const std::string& text);

}  // namespace tn
