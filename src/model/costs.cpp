#include "model/costs.h"

#include <map>
#include <set>

#include "compiler/op_cost.h"
#include "functions/traced.h"

namespace tn::model {
namespace {

int64_t bytes_at(TypeRef type, std::span<const Binding> sizes) {
  return elements_at(type, sizes) * size_of(type->dtype);
}

/// Products count two for each element that is summed up, other ops one for each element that they
/// compute or fold; what only moves elements counts nothing.
double flops_of(const Graph& graph, std::span<const Binding> sizes) {
  double flops = 0;
  for (const GraphOp& op : graph.ops) {
    OpWork work = work_of(graph, op, sizes, host_target());
    auto elements = [&](Val v) {
      return static_cast<double>(elements_at(graph.types[static_cast<size_t>(v)], sizes));
    };
    if (work.multiply_adds > 0)
      flops += 2 * work.multiply_adds;
    else if (op.op->is_elementwise())
      flops += elements(op.out);
    else if (op.op->family == Family::reduction)
      flops += elements(graph.in(op)[0]);
  }
  return flops;
}

}  // namespace

std::vector<BlockCost> costs(const Resolved& model) {
  std::vector<BlockCost> costs;
  std::map<std::pair<const BlockDef*, std::vector<TypeRef>>, double> known;
  std::set<int> seen;
  for (const FlatBlock& block : model.flat.blocks) {
    BlockCost& cost = costs.emplace_back();
    std::vector<TypeRef> in = model.operand_types(block);
    for (int w : block.in) {
      if (w < 0 || model.flat.wires[w].role != Role::parameter || !seen.insert(w).second) continue;
      TypeRef type = model.types[w];
      cost.parameters += elements_at(type, model.sizes);
      cost.parameter_bytes += bytes_at(type, model.sizes);
    }
    for (int w : block.out) cost.bytes += bytes_at(model.types[w], model.sizes);
    auto [at, is_new] = known.try_emplace({block.def.get(), std::move(in)}, 0);
    if (is_new)
      at->second = flops_of(
          expand_composites(traced(block, at->first.second, model.training, model.sizes).graph),
          model.sizes);
    cost.flops = at->second;
  }
  return costs;
}

}  // namespace tn::model
