// call{plain, graph}(x…) = graph(x…)
//
// A custom call is the same once derivatives are taken; its last operand, the number of its rules,
// is dropped. A remat call stays: merged with the ops around it nothing would be computed twice
// (see recompute.cpp). With `recompute` switched off it is a plain one.
#include "ir/rewrite.h"
#include "ops/call.h"
#include "ops/op_decls.h"
#include "passes/passes.h"

namespace tn {

static const ops::CallAttrs* inlined_call(const GraphOp& op, const PassContext& context) {
  if (op.op != &ops::call) return nullptr;
  auto* attrs = static_cast<const ops::CallAttrs*>(op.attr_data());
  bool stays = attrs->kind == ops::CallKind::remat && !context.is_off("recompute");
  return stays ? nullptr : attrs;
}

Graph inline_calls(const Graph& graph, PassContext& context) {
  return replace_ops(graph, [&](const GraphOp& op) -> std::optional<Graph> {
    const ops::CallAttrs* call = inlined_call(op, context);
    if (!call) return {};
    return inline_calls(*call->graph, context);
  });
}

}  // namespace tn
