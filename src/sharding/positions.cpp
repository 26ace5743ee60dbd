#include "sharding/positions.h"

#include "ops/op_attrs.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/operators.h"
#include "tenon/ops.h"

namespace tn::sharding {

namespace {

/// The coordinates along `axis` that a worker holds, with extent 1 in the other dimensions.
Val coordinates(LocalGraph& graph, const Mesh& mesh, const Shape& shape, int axis, DType dtype,
                const Layout& layout) {
  Shape line = Shape::filled(shape.rank(), 1);
  line[axis] = shape[axis];
  Layout along(mesh);
  for (int t = 0; t < mesh.count(); ++t)
    if (layout[t].dim == axis) along[t] = layout[t];
  Val whole = graph.add(ops::iota, ops::IotaAttrs{line, Axis(axis), dtype}, {});
  return graph.moved({Layout(mesh), loop::Monoid::add, {whole}}, graph.type(whole), along).parts[0];
}

/// random_bits from the positions in the whole tensor: those of `random_fold_in`.
Graph bits_at(TypeRef key, TypeRef out, const Shape& whole, const Shape& local) {
  Tensors params{make_param(key)};
  Tensor place;
  Dim stride = 1;
  for (int k = whole.rank() - 1; k >= 0; --k) {
    Shape line = Shape::filled(local.rank(), 1);
    line[k] = local[k];
    params.push_back(make_param(intern(Type{DType::u32, line, key->device})));
    Tensor term = params.back() * make_scalar(Scalar(stride.value()), DType::u32, false);
    place = place.defined() ? place + term : term;
    stride *= whole[k];
  }
  Tensor words = tn::random_fold_in(params[0], place);
  Shape shape = local;
  auto word = [&](int64_t i) {
    return tn::reshape(ops::slice_axis(words, local.rank(), i, i + 1), shape);
  };
  Tensor high = word(0), low = word(1), bits = high ^ low;
  if (out->dtype == DType::u64) bits = (cast_to(high, DType::u64) << 32) | cast_to(low, DType::u64);
  return capture(params, Tensors{cast_to(bits, out->dtype)}).graph;
}

std::optional<Val> add_bits(LocalGraph& graph, const Mesh& mesh, TypeRef type, const Layout& layout,
                            Val key) {
  constexpr int64_t kMost = INT64_C(1) << 32;  // random_fold_in takes positions of 32 bits
  if (graph.shape(key).rank() != 1 || type->elements < 0 || type->elements > kMost) return {};
  Shape local = local_shape(mesh, layout, type->shape);
  std::vector<Val> in{key};
  for (int k = local.rank() - 1; k >= 0; --k)
    in.push_back(coordinates(graph, mesh, type->shape, k, DType::u32, layout));
  return graph.add_all(bits_at(graph.type(key), type, type->shape, local), in);
}

}  // namespace

bool has_positions(const OpDef& op) { return &op == &ops::iota || &op == &ops::random_bits; }

bool depends_on_position(const GraphOp& op, const Layout& layout, int rank) {
  if (!has_positions(*op.op)) return false;
  for (const Digit& digit : layout.digits) {
    if (!digit || digit.dim >= rank) continue;
    if (op.op == &ops::random_bits) return true;
    if (static_cast<const ops::IotaAttrs*>(op.attr_data())->axis.i == digit.dim) return true;
  }
  return false;
}

std::optional<Val> add_by_position(LocalGraph& graph, const Mesh& mesh, const GraphOp& op,
                                   TypeRef type, const Layout& layout, std::span<const Val> in) {
  if (op.op == &ops::random_bits) return add_bits(graph, mesh, type, layout, in[0]);
  const auto& a = *static_cast<const ops::IotaAttrs*>(op.attr_data());
  Val line = coordinates(graph, mesh, type->shape, a.axis.i, a.dtype, layout);
  Shape local = local_shape(mesh, layout, type->shape);
  if (identical(graph.shape(line), local)) return line;
  return graph.add(ops::broadcast_to, ops::ShapeAttrs{local}, {line});
}

}  // namespace tn::sharding
