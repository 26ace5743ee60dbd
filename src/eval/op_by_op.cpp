#include "eval/op_by_op.h"

#include "passes/passes.h"

namespace tn {

static Graph all_ops(const Graph& graph) {
  std::vector<std::string> off = {"recompute"};
  PassContext context{.off = off};
  return prune(inline_calls(graph, context));
}

OpByOp::OpByOp(const CheckedRun& run)
    : graph_(all_ops(run.graph)),
      values_(graph_.types.size()),
      maker_(graph_.types.size()),
      uses_(graph_.types.size()) {
  for (Val v = 0; v < graph_.inputs(); ++v) {
    size_t known = at(v) - run.inputs.size();
    values_[at(v)] = at(v) < run.inputs.size() ? run.inputs[at(v)] : run.options.constants[known];
  }
  for (const GraphOp& op : graph_.ops) {
    for (Val v : graph_.in(op)) ++uses_[at(v)];
    for (int k = 0; k < op.outs; ++k) maker_[at(op.out + k)] = &op;
  }
}

void OpByOp::compute(size_t n) {
  const GraphOp& op = graph_.ops[n];
  if (op.op == &scalar_leaf) return;
  std::vector<Bound> in, out(static_cast<size_t>(op.outs));
  Graph alone = part(op, in);
  run(*compile(alone, CompileOptions()), in, nullptr, out);
  for (int k = 0; k < op.outs; ++k)
    values_[at(op.out + k)] = std::move(out[static_cast<size_t>(k)]);
}

void OpByOp::release_operands(size_t n) {
  for (Val v : graph_.in(graph_.ops[n]))
    if (--uses_[at(v)] == 0) values_[at(v)] = {};
}

/// The op as a graph, and the values of its inputs.
Graph OpByOp::part(const GraphOp& op, std::vector<Bound>& in) const {
  Graph made;
  std::vector<Val> operands;
  for (Val v : graph_.in(op)) {
    operands.push_back(kNoVal);
    if (is_number(v)) continue;
    operands.back() = made.add_input(format("x{}", in.size()), graph_.types[at(v)]);
    in.push_back(values_[at(v)]);
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    Val v = graph_.in(op)[i];
    if (is_number(v)) operands[i] = made.add_constant(maker_[at(v)]->scalar, graph_.types[at(v)]);
  }
  Val first = made.add(*op.op, op.attrs, operands, graph_.out_types(op));
  for (int k = 0; k < op.outs; ++k) made.outputs.push_back(first + k);
  return made;
}

}  // namespace tn
