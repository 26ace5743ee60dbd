// call{remat, graph}(x…) = graph(x…), computed where it is called, from x alone
//
// The backward half of a checkpointed function computes its forward half again. Both are calls
// until here, so that no earlier pass sees the same op twice and merges them: a call is simplified
// by itself, then put in its place, and `cse` does not run afterwards.
#include "ir/rewrite.h"
#include "ops/call.h"
#include "ops/op_decls.h"
#include "passes/passes.h"
#include "passes/pipeline.h"

namespace tn {

/// The body, simplified as if it were a graph of its own. Data found in it has no place among the
/// inputs of the call, so then it is left to be computed.
static Graph simplified(const Graph& body, const PassContext& context) {
  PassContext inner{.evaluate = context.evaluate,
                    .decisions = context.decisions,
                    .on = context.on,
                    .sizes = context.sizes};
  Graph graph = run_passes(body, inner, pipeline(1), context.off);
  if (inner.constants.empty()) return graph;
  PassContext plain{.decisions = context.decisions, .on = context.on, .sizes = context.sizes};
  return run_passes(body, plain, pipeline(1), context.off);
}

Graph repeat_rematerialised(const Graph& graph, PassContext& context) {
  return replace_ops(graph, [&](const GraphOp& op) -> std::optional<Graph> {
    if (op.op != &ops::call) return {};
    auto* call = static_cast<const ops::CallAttrs*>(op.attr_data());
    if (call->kind != ops::CallKind::remat) return {};
    context.decide(
        "recompute", true, op.loc,
        [&] { return format("{} ops kept apart", call->graph->ops.size()); },
        "a checkpoint computes them again instead of keeping them");
    return simplified(*call->graph, context);
  });
}

}  // namespace tn
