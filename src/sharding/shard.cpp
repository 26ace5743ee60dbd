#include "sharding/shard.h"

#include <algorithm>

#include "base/error.h"
#include "ops/collectives.h"
#include "ops/op_decls.h"
#include "sharding/local_region.h"

namespace tn::sharding {

/// Functions of one worker name axes of the mesh. Collectives of other groups are for programs that
/// divide their work by hand.
static bool is_along_axis(const GraphOp& op, const Mesh& mesh) {
  const auto& group = *static_cast<const ops::GroupAttrs*>(op.attr_data());  // the first of all
  int axis = mesh.find(group.mesh_axis);
  return axis >= 0 && mesh[axis].size == group.workers;
}

Sharded shard(const Graph& graph, const Mesh& mesh, std::span<const Constraint> constraints,
              Decisions* decisions, const Given& given) {
  // The results of a function of one worker pass `from_local`.
  bool has_own = has_borders(graph);
  for (const GraphOp& op : graph.ops)
    if (op.op != &scalar_leaf && ops::is_collective(*op.op) &&
        !(has_own && is_along_axis(op, mesh)))
      fail(Hint{"give layouts to tensors; collectives follow from them"},
           "shard: the graph has collectives of its own: {}", op.op->name);
  Links links(graph);
  Sharded made;
  std::vector<Constraint> all(constraints.begin(), constraints.end());
  std::ranges::move(constraints_in(graph, mesh), std::back_inserter(all));
  Layouts layouts = propagate(graph, mesh, all, links, decisions);
  made.local = partition(graph, mesh, layouts, links, decisions, given);
  for (Val v : graph.outputs) made.parameters.push_back(layouts.parameters[static_cast<size_t>(v)]);
  made.layouts = std::move(layouts.values);
  return made;
}

}  // namespace tn::sharding
