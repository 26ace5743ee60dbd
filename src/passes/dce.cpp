// What no output needs is not computed; constant inputs that nothing reads are given up.
#include "ir/rewrite.h"
#include "passes/passes.h"

namespace tn {

Graph drop_dead_ops(const Graph& graph, PassContext& context) {
  std::vector<bool> needed = needed_values(graph);
  Graph out;
  out.name = graph.name;
  GraphCopy copy{graph, out};
  std::vector<Bound> constants;
  Val first_constant = context.first_constant(graph);
  for (Val v = 0; v < graph.inputs(); ++v) {
    auto at = static_cast<size_t>(v);
    if (v >= first_constant && !needed[at]) continue;
    copy[v] = out.add_input(graph.input_names[at], graph.types[at]);
    if (v >= first_constant)
      constants.push_back(context.constants[static_cast<size_t>(v - first_constant)]);
  }
  for (const GraphOp& op : graph.ops)
    if (is_needed(op, needed)) copy.op(op);
  out.outputs = copy.all(graph.outputs);
  context.constants = std::move(constants);
  return out;
}

}  // namespace tn
