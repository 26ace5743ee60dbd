#include "sharding/shard.h"

#include <algorithm>

#include "base/error.h"
#include "ops/collectives.h"

namespace tn::sharding {

Sharded shard(const Graph& graph, const Mesh& mesh, std::span<const Constraint> constraints,
              Decisions* decisions, const Given& given) {
  for (const GraphOp& op : graph.ops)
    if (op.op != &scalar_leaf && ops::is_collective(*op.op))
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
