#include "sharding/local_region.h"

#include <algorithm>

#include "base/error.h"
#include "ir/body.h"
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

bool has_borders(const Graph& graph) {
  return std::ranges::any_of(graph.ops, [](const GraphOp& op) {
    if (op.op == &ops::to_local || op.op == &ops::from_local) return true;
    return std::ranges::any_of(bodies_of(op), [](GraphRef inner) { return has_borders(*inner); });
  });
}

SumOfWorkers sum_of_workers(const Graph& graph, const Mesh& mesh, Val v, uint32_t along,
                            const std::vector<int>& uses) {
  SumOfWorkers sum{v, 0, {}};
  auto dtype = graph.types[static_cast<size_t>(v)]->dtype;
  if (dtype == DType::f16 || dtype == DType::bf16) return sum;  // whose terms are wider
  /// The number of the op that makes a value which nothing else reads; -1: none, or another op.
  auto maker = [&](Val of, const OpDef& op) {
    auto after = std::ranges::upper_bound(graph.ops, of, {}, &GraphOp::out);
    if (after == graph.ops.begin() || uses[static_cast<size_t>(of)] != 1) return -1;
    auto made = after - 1;
    return made->op == &op && made->out == of ? static_cast<int>(made - graph.ops.begin()) : -1;
  };
  for (;;) {
    int vary = maker(sum.operand, ops::vary);
    if (vary < 0) return sum;
    int fold = maker(graph.in(graph.ops[static_cast<size_t>(vary)])[0], ops::all_sum);
    if (fold < 0) return sum;
    const GraphOp& op = graph.ops[static_cast<size_t>(fold)];
    int axis = mesh.find(static_cast<const ops::GroupAttrs*>(op.attr_data())->mesh_axis);
    bool counts = axis >= 0 && along >> axis & 1 && mesh[axis].parts_per_worker() == 1;
    if (!counts) return sum;
    sum.operand = graph.in(op)[0], sum.axes |= 1u << axis;
    sum.ops.push_back(vary), sum.ops.push_back(fold);
  }
}

Layout layout_of_parts(const Graph& graph, const GraphOp& op, const Mesh& mesh) {
  const auto& a = *static_cast<const ops::WorkerPartsAttrs*>(op.attr_data());
  Mesh own = parse_mesh(a.mesh);
  if (own.workers() == 1) return Layout(mesh);  // its part is the whole
  if (own != mesh)
    fail(Hint{"make one mesh with all axes, or move the tensors to the other mesh before"},
         "shard_map: the function is for the mesh {}, and the op around it runs on the mesh {}",
         a.mesh, to_text(mesh));
  Val whole = op.op == &ops::to_local ? graph.in(op)[0] : op.out;
  return layout_of(mesh, a.mesh_axes, a.axes, *graph.types[static_cast<size_t>(whole)]);
}

}  // namespace tn::sharding
