#include "sharding/indexed_blocks.h"

#include "ops/collectives.h"
#include "ops/indexing.h"
#include "ops/op_attrs.h"
#include "ops/op_decls.h"
#include "tenon/operators.h"
#include "tenon/ops.h"

namespace tn::sharding {

namespace {

/// The indexed dimensions of a gather or scatter, and how it treats indices outside.
struct IndexedOp {
  Axes axes;
  ops::OutOfRange outside = ops::OutOfRange::check;
  bool drops = false;
  int first = 0;  // of the index operands

  explicit IndexedOp(const GraphOp& op) {
    if (op.op == &ops::gather) {
      const auto& a = *static_cast<const ops::GatherAttrs*>(op.attr_data());
      axes = a.axes, outside = a.outside, first = 1;
      drops = ops::when_reading(outside) == ops::OutOfRange::drop;
    } else if (op.op == &ops::scatter) {
      const auto& a = *static_cast<const ops::ScatterAttrs*>(op.attr_data());
      axes = a.axes, outside = a.outside, first = 2;
      drops = ops::when_writing(outside) == ops::OutOfRange::drop;
    }
  }
};

/// The mesh axis that divides dimension `dim` of the indexed tensor; -1: none.
int axis_at(const Division& division, int dim) {
  for (size_t t = 0; t < division.reaches.size(); ++t)
    if (const auto& reach = division.reaches[t]; reach && reach->slots[0].dim == dim)
      return static_cast<int>(t);
  return -1;
}

/// The number of this worker along an axis.
Val coordinate(LocalGraph& graph, const MeshAxis& axis) {
  Val all = graph.add(ops::iota, ops::IotaAttrs{Shape{Dim(axis.size)}, Axis(0), DType::i64}, {});
  ops::DigitAttrs own{intern(axis.name), axis.size, Axis(0), 1};
  return graph.reshape(graph.add(ops::slice_of_worker, own, {all}), {});
}

/// Places counted from the block of a worker, which begins at `worker` blocks; one that is dropped
/// lies outside of all blocks. The op checks no longer: `line`, the positions along the indexed
/// axis, is read in its place, and what was checked is checked there.
Tensor place_in_block(const IndexedOp& op, const Tensor& at, const Shape& x, int dim,
                      const Tensor& line, const Tensor& worker, Dim block) {
  int64_t last = x[dim].value() - 1;
  auto number = [](int64_t n, DType dtype) { return make_scalar(Scalar(n), dtype, false); };
  bool is_wide = at.dtype() == DType::u64;  // whose largest are no i64
  Tensor wide = cast_to(is_wide ? tn::minimum(at, number(last + 1, DType::u64)) : at, DType::i64);
  Tensor place = line.defined()
                     ? tn::reshape(tn::gather(line, {at}, Axes(dim), 0, "check_clamp"), at.shape())
                     : tn::clip(wide, number(0, DType::i64), number(last, DType::i64));
  if (op.drops) place = tn::where(tn::equal(place, wide), place, number(last + 1, DType::i64));
  return worker.defined() ? place - worker * number(block.value(), DType::i64) : place;
}

/// The same for one index operand of a worker. `axis` divides the dimension, or none does.
void count_from_block(LocalGraph& graph, const IndexedOp& op, const Shape& x, int dim,
                      const MeshAxis* axis, Form& indices) {
  Device device = graph.type(indices.parts[0])->device;
  std::vector<Val> more;
  Tensors params{Tensor()};
  auto add = [&](Val v) {
    more.push_back(v), params.push_back(make_param(on_device(graph.type(v), device)));
    return params.back();
  };
  Tensor line, worker;
  if (ops::is_checked(op.outside)) {
    Shape shape = Shape::filled(x.rank(), 1);
    shape[dim] = x[dim];
    line = add(graph.add(ops::iota, ops::IotaAttrs{shape, Axis(dim), DType::i64}, {}));
  }
  if (axis) worker = add(coordinate(graph, *axis));
  Dim block = axis ? floor_div(x[dim], axis->size) : x[dim];
  for (Val& v : indices.parts) {
    params[0] = make_param(graph.type(v));
    Tensor place = place_in_block(op, params[0], x, dim, line, worker, block);
    std::vector<Val> in{v};
    in.insert(in.end(), more.begin(), more.end());
    v = graph.add_all(capture(params, Tensors{place}).graph, in);
  }
}

}  // namespace

bool is_indexed_in_blocks(const GraphOp& op, const Division& division) {
  return std::ranges::any_of(IndexedOp(op).axes,
                             [&](Axis k) { return axis_at(division, k.i) >= 0; });
}

bool picks_from_blocks(const GraphOp& op) { return op.op == &ops::gather; }

const Attrs* count_from_blocks(LocalGraph& graph, const Mesh& mesh, const GraphOp& op,
                               const InternedType& x, const Division& division,
                               std::span<Form> operands) {
  IndexedOp indexed(op);
  auto divides = [&](int axis) { return axis >= 0 && mesh[axis].size > 1; };
  if (std::ranges::none_of(indexed.axes, divides, [&](Axis k) { return axis_at(division, k.i); }))
    return op.attrs;
  for (int i = 0; i < indexed.axes.size(); ++i) {
    int dim = indexed.axes[i].i, axis = axis_at(division, dim);
    bool is_divided = divides(axis);
    if (!is_divided && indexed.drops && !ops::is_checked(indexed.outside)) continue;
    count_from_block(graph, indexed, x.shape, dim, is_divided ? &mesh[axis] : nullptr,
                     operands[static_cast<size_t>(indexed.first + i)]);
  }
  const AttrKind& kind = *op.op->attrs;
  AttrBuffer made(kind, op.attr_data());
  if (op.op == &ops::gather)
    reinterpret_cast<ops::GatherAttrs*>(made.data)->outside = ops::OutOfRange::drop;
  else
    reinterpret_cast<ops::ScatterAttrs*>(made.data)->outside = ops::OutOfRange::drop;
  return intern(kind, made.data);
}

Form joined_picks(LocalGraph& graph, const Mesh& mesh, Form picked, uint32_t axes, TypeRef type,
                  const Layout& target) {
  auto as_bits = [&](DType dtype) {
    for (Val& v : picked.parts)
      if (graph.type(v)->dtype != dtype)
        v = graph.add(ops::bitcast, intern(*ops::bitcast.attrs, &dtype), std::array{v});
  };
  DType own = type->dtype;
  bool is_float = kind_of(own) == Kind::floating;
  constexpr DType kBits[] = {DType::u16, DType::u32, DType::u64};
  if (is_float) as_bits(kBits[size_of(own) / 4]);
  if (own == DType::b1) picked.monoid = loop::Monoid::or_;
  for (int t = 0; t < mesh.count(); ++t)
    if (axes >> t & 1) picked = graph.folded_by_all(std::move(picked), t, type->shape, target[t]);
  if (is_float) as_bits(own);
  return picked;
}

}  // namespace tn::sharding
