#include "ops/control_flow.h"

#include "base/error.h"
#include "ir/interned.h"
#include "ir/sizes.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"

namespace tn::ops {

std::optional<ControlStep::Kind> control_kind(const OpDef& op) {
  if (&op == &cond) return ControlStep::Kind::cond;
  if (&op == &while_loop) return ControlStep::Kind::while_loop;
  if (&op == &scan) return ControlStep::Kind::scan;
  return {};
}

GraphRef saving_carry(GraphRef body, int64_t carries) {
  Graph graph = *body;
  for (Val v = 0; v < carries; ++v) graph.outputs.push_back(v);
  return intern(std::move(graph));
}

Mask inexact_mask(const Tensors& list) {
  Mask mask;
  for (const Tensor& t : list) mask.push_back(is_inexact(t.dtype()));
  return mask;
}

Tensors filled_like(Tensors list, const Tensors& like, const Mask& mask) {
  for (size_t i = 0; i < list.size(); ++i)
    if (mask[i] && !list[i].defined())
      list[i] = filled(Scalar(0), like[i].dtype(), like[i].shape());
  return list;
}

Tensors params_like(const Tensors& list) {
  Tensors params;
  for (const Tensor& t : list) params.push_back(make_param(type_of(t)));
  return params;
}

Type slice_type(Type type) {
  type.shape.erase(0);
  return type;
}

Tensors slice_params(const Tensors& xs) {
  Tensors params;
  RecordScope scope;
  for (const Tensor& t : xs) params.push_back(make_param(intern(slice_type(*type_of(t)))));
  return params;
}

bool same_type(const Type& a, const Type& b) {
  return a.dtype == b.dtype && a.device == b.device && decide_equal(a.shape, b.shape);
}

/// Single values of the host go to any device.
static bool travels_to(const Type& from, const Type& to) {
  return from.device.is_host() && from.rank() == 0 && to.rank() == 0 && from.dtype == to.dtype;
}

void check_inputs(std::string_view op, const Graph& graph, std::span<const TypeRef> in) {
  if (static_cast<int>(in.size()) != graph.inputs())
    fail("{}: {} operands for a graph of {} inputs", op, in.size(), graph.inputs());
  for (size_t i = 0; i < in.size(); ++i)
    if (!same_type(*in[i], *graph.types[i]) && !travels_to(*in[i], *graph.types[i]))
      fail(Fault::type, "{}: operand {} is {} but the graph takes {}", op, i, *in[i],
           *graph.types[i]);
}

std::vector<Type> output_types(const Graph& graph) {
  std::vector<Type> out;
  for (Val v : graph.outputs) out.push_back(*graph.types[static_cast<size_t>(v)]);
  return out;
}

}  // namespace tn::ops
