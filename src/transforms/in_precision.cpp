#include <algorithm>
#include <cstring>

#include "ir/body.h"
#include "ir/trace.h"
#include "tenon/amp.h"
#include "transforms/variants.h"

namespace tn {
namespace {

bool has_graphs(const GraphOp& op) {
  if (!op.attrs) return false;
  FieldList fields = list_fields(*op.attrs->kind, const_cast<void*>(op.attr_data()));
  return std::ranges::any_of(fields.items,
                             [](const Field& f) { return f.kind == FieldKind::graph; });
}

/// The op as a user calls it. One with a graph takes exactly the types of its inputs.
Tensors call_again(const Graph& graph, const GraphOp& op, Tensors in) {
  if (has_graphs(op)) {
    std::vector<TypeRef> types = graph.in_types(op);
    for (size_t i = 0; i < in.size(); ++i) in[i] = cast_to(in[i], types[i]->dtype);
    return emit_all(*op.op, in, op.attr_data());
  }
  std::vector<uint64_t> attrs(op.op->attrs->size / sizeof(uint64_t) + 1);
  if (op.attrs) std::memcpy(attrs.data(), op.attr_data(), op.op->attrs->size);
  return call_with(*op.op, std::move(in), attrs.data());
}

}  // namespace

Graph in_precision(const Graph& graph, DType narrow) {
  Tensors params = params_for(graph), values = params, out;
  {
    amp::Autocast policy(narrow);
    for (const GraphOp& op : graph.ops) {
      if (op.op == &scalar_leaf) {  // weak, as it was when it was written: it widens nothing
        DType type = graph.types[static_cast<size_t>(op.out)]->dtype;
        values.push_back(make_scalar(op.scalar, type, true));
        continue;
      }
      LocScope place(op.loc);
      Tensors in;
      for (Val v : graph.in(op)) in.push_back(values[static_cast<size_t>(v)]);
      for (Tensor& t : call_again(graph, op, std::move(in))) values.push_back(std::move(t));
    }
  }
  for (Val v : graph.outputs)
    out.push_back(
        cast_to(values[static_cast<size_t>(v)], graph.types[static_cast<size_t>(v)]->dtype));
  Graph made = *graphs_between(params, {out}).graphs[0];
  made.name = graph.name, made.input_names = graph.input_names;
  return made;
}

}  // namespace tn
