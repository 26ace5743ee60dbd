// composite(x…) = body(x…), unless a kernel of the runtime computes it whole (OpDef::run).
//
// Kept ones are worth more than their parts: attention never has its scores in memory. Switched
// off, none is kept. Calls are not composites here: `inline` and `recompute` replace them.
#include "ir/rewrite.h"
#include "ops/op_decls.h"
#include "passes/passes.h"

namespace tn {

Graph claim_composites(const Graph& graph, PassContext& context) {
  return replace_ops(graph, [&](const GraphOp& op) -> std::optional<Graph> {
    if (!op.op->body || op.op == &ops::call) return {};
    if (op.op->run && !context.is_off("claim")) {
      context.decide(
          "claim", true, op.loc, [&] { return format("{} kept whole", op.op->name); },
          "the runtime has a kernel for it");
      return {};
    }
    Graph body = body_graph(*op.op, op.attr_data(), graph.in_types(op));
    return claim_composites(body, context);
  });
}

}  // namespace tn
