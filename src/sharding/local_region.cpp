#include "sharding/local_region.h"

#include "base/error.h"
#include "ops/collectives.h"
#include "ops/op_decls.h"
#include "ops/worker_parts.h"

namespace tn::sharding {

std::vector<bool> ops_of_one_worker(const Graph& graph) {
  std::vector<bool> list(graph.ops.size()), is_own(graph.types.size());
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const GraphOp& op = graph.ops[i];
    if (op.op == &scalar_leaf) continue;
    bool enters = op.op == &ops::to_local, leaves = op.op == &ops::from_local;
    bool is_inside = ops::is_collective(*op.op);
    for (Val v : graph.in(op)) is_inside |= is_own[static_cast<size_t>(v)];
    list[i] = is_inside && !leaves;
    for (int k = 0; k < op.outs; ++k) is_own[static_cast<size_t>(op.out + k)] = enters || list[i];
  }
  return list;
}

Layout layout_of_parts(const Graph& graph, const GraphOp& op, const Mesh& mesh) {
  const auto& a = *static_cast<const ops::WorkerPartsAttrs*>(op.attr_data());
  Mesh own = parse_mesh(a.mesh);
  if (own.workers() == 1) return Layout(mesh);  // its part is the whole
  invariant(own == mesh, "shard_map: parts of {} on {}", a.mesh, to_text(mesh));
  Val whole = op.op == &ops::to_local ? graph.in(op)[0] : op.out;
  return layout_of(mesh, a.mesh_axes, a.axes, *graph.types[static_cast<size_t>(whole)]);
}

}  // namespace tn::sharding
