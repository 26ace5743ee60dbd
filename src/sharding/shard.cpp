#include "sharding/shard.h"

#include "base/error.h"
#include "ops/collectives.h"

namespace tn::sharding {

Sharded shard(const Graph& graph, const Mesh& mesh, std::span<const Constraint> constraints,
              Decisions* decisions) {
  for (const GraphOp& op : graph.ops)
    if (op.op != &scalar_leaf && ops::is_collective(*op.op))
      fail(Hint{"give layouts to tensors; collectives follow from them"},
           "shard: the graph has collectives of its own: {}", op.op->name);
  Links links(graph);
  Sharded made;
  Layouts layouts = propagate(graph, mesh, constraints, links, decisions);
  made.local = partition(graph, mesh, layouts, links, decisions);
  made.layouts = std::move(layouts.values);
  return made;
}

}  // namespace tn::sharding
