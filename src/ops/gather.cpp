// Reading by index: gather and what is built on it.
#include "base/error.h"
#include "ir/sizes.h"
#include "ops/families.h"
#include "ops/index_bounds.h"
#include "ops/indexing.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

struct TakeAttrs {
  Maybe<Axis> axis;
  static constexpr void fields(auto& a, auto&& f) { f("axis", a.axis); }
};

struct AlongAttrs {
  Axis axis = -1;
  static constexpr void fields(auto& a, auto&& f) { f("axis", a.axis); }
};

struct SelectAttrs {
  Axis axis;
  static constexpr void fields(auto& a, auto&& f) { f("axis", a.axis, required); }
};

struct SizesAttrs {
  Shape sizes;
  static constexpr void fields(auto& a, auto&& f) { f("sizes", a.sizes, required); }
};

struct OneHotAttrs {
  int64_t num_classes = 0;
  DType dtype = DType::f32;
  static constexpr void fields(auto& a, auto&& f) {
    f("num_classes", a.num_classes, required), f("dtype", a.dtype);
  }
};

Type infer_gather(const GatherAttrs& a, Types in) {
  Shape indices = index_shape("gather", in.subspan(1));
  return {in[0]->dtype, indexed_shape("gather", *in[0], a.axes, a.batch_dims, indices)};
}

/// The coordinates of an operand of `shape` that broadcasts to the axes `at`.
loop::Coords broadcast_coords(loop::Lowering& l, const Shape& shape, const loop::Coords& at) {
  loop::Coords out;
  size_t first = at.size() - static_cast<size_t>(shape.rank());
  for (int k = 0; k < shape.rank(); ++k)
    out.push_back(shape[k].is(1) ? l.number(0) : at[first + static_cast<size_t>(k)]);
  return out;
}

void lower_gather(const GatherAttrs& a, loop::Lowering& l) {
  const Shape& shape = l.in[0]->shape;
  int own = index_shape("gather", l.in.subspan(1)).rank() - static_cast<int>(a.batch_dims);
  loop::Coords to = l.loops(l.out[0]->shape), from;
  int first = a.axes[0].i, next = 0, operand = 1;
  loop::Coords point(to.begin(), to.begin() + a.batch_dims);
  point.insert(point.end(), to.begin() + first, to.begin() + first + own);
  S within;
  for (int k = 0; k < shape.rank(); ++k) {
    if (k == first) next += own;
    if (!a.axes.has(k)) {
      from.push_back(to[static_cast<size_t>(next++)]);
      continue;
    }
    const Shape& indices = l.in[static_cast<size_t>(operand)]->shape;
    S place = l.load_real(operand++, broadcast_coords(l, indices, point));
    from.push_back(l.coordinate(place, shape[k]));
    if (when_reading(a.outside) == OutOfRange::clamp) continue;
    S here = sc::cast(place, DType::i64) == l.b.index(from.back());
    within = within.builder ? within & here : here;
  }
  loop::Element x = l.load(0, from);
  if (!within.builder) return l.store(0, to, x);
  loop::Element zero{loop::constant_like(x.re, 0), {}};
  if (x.is_complex()) zero.im = zero.re;
  l.store(0, to, loop::select(within, x, zero));
}

Tensor adjoint_gather(const GatherAttrs& a, const Tensor& ct, const Tensors& in, int) {
  Tensors operands = in;
  operands[0] = filled(0, ct.dtype(), in[0].shape());
  operands.insert(operands.begin() + 1, ct);
  ScatterAttrs attrs{a.axes, ScatterMode::add, a.batch_dims, for_reading(a.outside)};
  return emit_all(scatter, operands, &attrs)[0];
}

Tensor move_batch(const Tensor& x, int from, int to) {
  return from == to ? x : tn::moveaxis(x, Axes(from), Axes(to));
}

Tensor reshaped(const Tensor& x, const Shape& shape) {
  return identical(x.shape(), shape) ? x : tn::reshape(x, shape);
}

/// An operand without the batch stays so: the batch is then an axis of the indices, after their
/// batch axes, and of the result in the place of the first indexed one.
Tensors gather_by_batch(const GatherAttrs& a, const BatchCall& call) {
  Tensors operands = call.in;
  int rank = 0, batch_dims = static_cast<int>(a.batch_dims);
  for (size_t i = 1; i < call.in.size(); ++i)
    rank = std::max(rank, call.in[i].rank() - call.batched[i]);
  for (size_t i = 1; i < call.in.size(); ++i) {
    Shape shape = call.in[i].shape();
    if (call.batched[i]) {
      while (shape.rank() <= rank) shape.insert(1, 1);
      operands[i] = move_batch(reshaped(call.in[i], shape), 0, batch_dims);
    } else if (int place = shape.rank() - (rank - batch_dims); place > 0) {
      shape.insert(place, 1);
      operands[i] = tn::reshape(call.in[i], shape);
    }
  }
  return {move_batch(emit_all(gather, operands, &a)[0], a.axes[0].i, 0)};
}

Tensors batch_gather(const GatherAttrs& a, const BatchCall& call) {
  if (!call.batched[0]) return gather_by_batch(a, call);
  BatchedIndices at = batch_indices(a.axes, a.batch_dims, call, 1);
  at.indices.insert(at.indices.begin(), call.in[0]);
  GatherAttrs attrs{at.axes, at.batch_dims, a.outside};
  return emit_all(gather, at.indices, &attrs);
}

Tensors take_at(const TakeAttrs& a, const Tensors& in) {
  Tensor x = a.axis ? in[0] : tn::reshape(in[0], {Dim(-1)});
  int axis = a.axis ? normal_axis(*a.axis, x.rank(), "take") : 0;
  check_kind("take", integers, in[1].dtype());
  return {tn::gather(x, {wrap_negative("take", in[1], *type_of(x), axis)}, Axes(axis))};
}

Tensors take_along(const AlongAttrs& a, const Tensors& in) {
  const Type &x = *type_of(in[0]), &at = *type_of(in[1]);
  check_kind("take_along_axis", integers, at.dtype);
  if (x.rank() != at.rank()) fail("take_along_axis: ranks differ: {} and {}", x, at);
  int axis = normal_axis(a.axis, x.rank(), "take_along_axis");
  Shape shape = broadcast(with_extent(x.shape, axis, 1), at.shape, "take_along_axis");
  Tensor wide = tn::broadcast_to(in[0], with_extent(shape, axis, x.shape[axis]));
  Tensor indices = wrap_negative("take_along_axis", in[1], x, axis);
  return {read_along(wide, tn::broadcast_to(indices, shape), axis)};
}

void prepare_dynamic_slice(SizesAttrs&, Tensors& in) {
  for (size_t i = 1; i < in.size(); ++i) {
    check_kind("dynamic_slice", integers, in[i].dtype());
    in[i] = cast_to(in[i], DType::i64);
  }
}

Type infer_dynamic_slice(const SizesAttrs& a, Types in) {
  const Type& x = *in[0];
  if (a.sizes.rank() != x.rank() || static_cast<int>(in.size()) != x.rank() + 1)
    fail("dynamic_slice: {} sizes and {} starts for {}", a.sizes.rank(), in.size() - 1, x);
  for (int k = 0; k < x.rank(); ++k) {
    const Type& start = *in[static_cast<size_t>(k) + 1];
    if (start.rank() != 0) fail("dynamic_slice: a start must be one integer: {}", start);
    if (a.sizes[k].is_negative() || !decide_at_least(x.shape[k], a.sizes[k]))
      fail("dynamic_slice: size {} does not fit axis {}: {} ({})", a.sizes[k], k, x.shape[k], x);
  }
  return {x.dtype, a.sizes};
}

/// A start is moved so that the whole slice lies inside.
void lower_dynamic_slice(const SizesAttrs& a, loop::Lowering& l) {
  loop::Coords to = l.loops(a.sizes), from;
  for (int k = 0; k < a.sizes.rank(); ++k) {
    Dim places = l.in[0]->shape[k] - a.sizes[k] + Dim(1);
    from.push_back(l.add(l.coordinate(l.load_real(k + 1, {}), places), to[static_cast<size_t>(k)]));
  }
  l.store(0, to, l.load(0, from));
}

Tensor adjoint_dynamic_slice(const SizesAttrs&, const Tensor& ct, const Tensors& in, int) {
  Tensors operands = in;
  operands[0] = filled(0, ct.dtype(), in[0].shape());
  operands.insert(operands.begin() + 1, ct);
  return emit_all(dynamic_update_slice, operands, nullptr)[0];
}

/// Where every example begins elsewhere, it is a gather.
Tensors batch_dynamic_slice(const SizesAttrs& a, const BatchCall& call) {
  Shape shape = call.in[0].shape();
  if (call.batched[0]) shape.erase(0);
  BlockStarts starts(shape, a.sizes, call, 1);
  if (!starts.batched) {
    Tensors operands = starts.values;
    operands.insert(operands.begin(), {with_batch(call, 0), make_scalar(0, DType::i64, false)});
    SizesAttrs attrs{a.sizes};
    attrs.sizes.insert(0, call.size);
    return emit_all(dynamic_slice, operands, &attrs);
  }
  BlockIndices block = index_block(shape, a.sizes, starts.values);
  if (!call.batched[0])
    return {move_batch(tn::gather(call.in[0], block.indices, block.axes), block.axes[0].i, 0)};
  for (Axis& k : block.axes) ++k.i;
  return {tn::gather(call.in[0], block.indices, block.axes, 1)};
}

}  // namespace

void sort_indices(std::string_view op, Axes& axes, Tensors& in, size_t first) {
  int count = static_cast<int>(in.size() - first);
  if (count == 0 || axes.size() != count)
    fail("{}: {} index tensors for {} axes ({})", op, count, axes.size(), *type_of(in[0]));
  for (int i = 0; i < count; ++i) {
    check_kind(op, integers, in[first + static_cast<size_t>(i)].dtype());
    axes[i] = normal_axis(axes[i], in[0].rank(), op);
  }
  for (int i = 1; i < count; ++i) {
    for (int j = i; j > 0 && axes[j].i <= axes[j - 1].i; --j) {
      if (axes[j] == axes[j - 1])
        fail("{}: axis {} is given twice ({})", op, axes[j].i, *type_of(in[0]));
      std::swap(axes[j], axes[j - 1]);
      std::swap(in[first + static_cast<size_t>(j)], in[first + static_cast<size_t>(j) - 1]);
    }
  }
}

void check_known(std::string_view op, OutOfRange outside, const Axes& axes, const Tensors& in,
                 size_t first) {
  if (outside != OutOfRange::check) return;
  for (size_t i = first; i < in.size(); ++i)
    check_bounds(op, in[i], *type_of(in[0]), axes[static_cast<int>(i - first)].i,
                 Negative::is_outside);
}

Shape index_shape(std::string_view op, Types indices) {
  Shape shape;
  for (TypeRef type : indices) {
    check_kind(op, integers, type->dtype);
    shape = broadcast(shape, type->shape, op);
  }
  return shape;
}

Shape indexed_shape(std::string_view op, const Type& x, const Axes& axes, int64_t batch_dims,
                    const Shape& indices) {
  if (batch_dims < 0 || batch_dims > axes[0].i || batch_dims > indices.rank())
    fail("{}: batch_dims must lie in [0, {}]: {} ({})", op, std::min(axes[0].i, indices.rank()),
         batch_dims, x);
  int batch = static_cast<int>(batch_dims);
  for (int k = 0; k < batch; ++k)
    if (!decide_equal(indices[k], x.shape[k]))
      fail("{}: batch axis {} differs: {} (indices {}) and {} ({})", op, k, indices[k], indices,
           x.shape[k], x);
  Shape shape;
  for (int k = 0; k < x.rank(); ++k) {
    if (k == axes[0].i)
      for (int i = batch; i < indices.rank(); ++i) shape.push_back(indices[i]);
    if (!axes.has(k)) shape.push_back(x.shape[k]);
  }
  for (Axis k : axes)
    if (x.shape[k.i].is(0) && !shape.elements().is(0))
      fail("{}: nothing to index along axis {}: {}", op, k.i, x);
  return shape;
}

Tensor wrap_negative(std::string_view op, const Tensor& indices, const Type& x, int axis) {
  check_bounds(op, indices, x, axis, Negative::wraps);
  if (kind_of(indices.dtype()) == Kind::natural) return indices;
  Tensor wide = cast_to(indices, DType::i64);  // so that adding the extent cannot overflow
  return tn::where(tn::less(wide, 0), wide + x.shape[axis], wide);
}

Tensor read_along(const Tensor& x, const Tensor& indices, int axis) {
  AlongIndices along(indices, axis);
  return tn::gather(x, along.indices, along.axes, axis);
}

Tensor positions(Dim extent, int rank, int axis) {
  return tn::iota(with_extent(Shape::filled(rank, 1), axis, extent), axis);
}

AlongIndices::AlongIndices(const Tensor& lines, int axis) {
  for (int k = axis; k < lines.rank(); ++k) {
    axes.push_back(k);
    indices.push_back(k == axis ? lines : positions(lines.shape()[k], lines.rank(), k));
  }
}

BatchedIndices batch_indices(const Axes& axes, int64_t batch_dims, const BatchCall& call,
                             size_t first) {
  BatchedIndices made{axes, batch_dims, Tensors(call.in.begin() + first, call.in.end())};
  for (Axis& k : made.axes) ++k.i;
  int rank = 0;
  bool any = false;
  for (size_t i = first; i < call.in.size(); ++i) {
    rank = std::max(rank, call.in[i].rank() - call.batched[i]);
    any |= call.batched[i];
  }
  if (!any && batch_dims == 0) return made;  // one more axis before the indexed ones
  ++made.batch_dims;
  for (size_t i = first; i < call.in.size(); ++i) {
    if (any && !call.batched[i]) continue;  // it broadcasts
    Tensor x = with_batch(call, i);
    Shape shape = x.shape();
    while (shape.rank() <= rank) shape.insert(1, 1);
    made.indices[i - first] = reshaped(x, shape);
  }
  return made;
}

BlockStarts::BlockStarts(const Shape& shape, const Shape& sizes, const BatchCall& call,
                         size_t first) {
  for (int k = 0; k < shape.rank(); ++k) {
    size_t at = first + static_cast<size_t>(k);
    bool whole = identical(shape[k], sizes[k]);  // then the start is 0, whatever is given
    values.push_back(whole ? make_scalar(0, DType::i64, false) : call.in[at]);
    batched |= !whole && call.batched[at];
  }
}

BlockIndices index_block(const Shape& shape, const Shape& sizes, std::span<const Tensor> starts) {
  int first = 0, last = shape.rank() - 1;
  while (first < last && identical(shape[first], sizes[first])) ++first;
  while (first < last && identical(shape[last], sizes[last])) --last;
  int rank = last - first + 1;
  BlockIndices block;
  for (int k = first; k <= last; ++k) {
    const Tensor& start = starts[static_cast<size_t>(k)];
    Shape column = start.shape();  // of the batch, if any
    if (column.rank())
      for (int i = 0; i < rank; ++i) column.push_back(1);
    Tensor place = tn::clip(start, 0, shape[k] - sizes[k]);
    block.axes.push_back(k);
    block.indices.push_back(tn::reshape(place, column) + positions(sizes[k], rank, k - first));
  }
  return block;
}

constexpr auto gather_def = Op<GatherAttrs>{
    .doc =
        "Elements of `x` at `indices`, one integer tensor for each of `axes`, which broadcast "
        "together; "
        "their axes stand in the place of the first indexed axis, axes not indexed stay. The first "
        "`batch_dims` axes of `x` and of the indices are one: each example has its own indices. "
        "An index out of bounds is an error, which compiled code checks under `debug_indices` "
        "only and clamps otherwise. Where `outside` is clamp it is always clamped, where it is "
        "drop the result is 0; check_clamp and check_drop say what compiled code does without a "
        "check.",
    .args = {"x", "*indices"},
    .prepare =
        [](GatherAttrs& a, Tensors& in) {
          sort_indices("gather", a.axes, in, 1);
          check_known("gather", a.outside, a.axes, in, 1);
        },
    .infer = rule<infer_gather>,
    .lower = rule<lower_gather>,
    .linear = Linear::each,
    .adjoint = rule<adjoint_gather>,
    .batch_rule = rule<batch_gather>,
    .samples = {{"f32[5,4], i64[3]", "axes=[0]", 0, 3},
                {"f32[5,4], i64[3,1], i64[2]", "axes=[1,0]", 0, 3},
                {"f32[5,4,3], i32[2], i32[2]", "axes=[0,2]", 0, 2},
                {"f32[2,3,4], i64[2,3,1]", "axes=[2], batch_dims=2", 0, 3},
                {"f32[2,5,4], i64[2,3], i32[1]", "axes=[1,2], batch_dims=1, outside=drop", -2, 6}},
};
TN_OP(gather);

constexpr auto take_def = Composite<TakeAttrs>{
    .doc =
        "Elements at `indices` along `axis`; of the flattened tensor when it is left out. Negative "
        "indices count from the end; one out of bounds is an error, which compiled code checks "
        "under `debug_indices` only and clamps otherwise.",
    .args = {"x", "indices"},
    .body = rule<take_at>,
    .samples = {{"f32[5], i64[3]", "", 0, 4},
                {"f32[5,4], i64[3]", "axis=1", -4, 3},
                {"f32[5,4], i64[2,3]", "axis=0", 0, 4}},
};
TN_OP(take);

constexpr auto index_select_def = Composite<SelectAttrs>{
    .doc = "`take(x, indices, axis)` of indices with at most one axis.",
    .args = {"x", "indices"},
    .body = [](const SelectAttrs& a, const Tensors& in) -> Tensors {
      if (in[1].rank() > 1)
        fail(Hint{"take(x, indices, axis) takes indices of any shape"},
             "index_select: indices have one axis: {} and {}", *type_of(in[0]), *type_of(in[1]));
      Tensor indices = in[1].rank() ? in[1] : tn::reshape(in[1], {Dim(1)});
      return {tn::take(in[0], indices, a.axis)};
    },
    .samples = {{"f32[5,4], i64[3]", "axis=0", 0, 4}, {"f32[5,4], i64[2]", "axis=-1", 0, 3}},
};
TN_OP(index_select);

constexpr auto take_along_axis_def = Composite<AlongAttrs>{
    .doc =
        "For each line along `axis` the elements at the matching line of `indices`; the other axes "
        "broadcast. Negative indices count from the end; one out of bounds is an error, which "
        "compiled code checks under `debug_indices` only and clamps otherwise.",
    .aliases = {"take_along_dim"},
    .args = {"x", "indices"},
    .body = rule<take_along>,
    .samples = {{"f32[3,4], i64[3,2]", "", 0, 3}, {"f32[3,4], i64[2,4]", "axis=0", -3, 2}},
};
TN_OP(take_along_axis);

constexpr auto dynamic_slice_def = Op<SizesAttrs>{
    .doc =
        "The block of `sizes` that begins at `starts`, one integer for each axis. A start is "
        "clamped so "
        "that the block lies inside.",
    .args = {"x", "*starts"},
    .prepare = rule<prepare_dynamic_slice>,
    .infer = rule<infer_dynamic_slice>,
    .lower = rule<lower_dynamic_slice>,
    .linear = Linear::each,
    .adjoint = rule<adjoint_dynamic_slice>,
    .batch_rule = rule<batch_dynamic_slice>,
    .samples = {{"f32[5], i64[]", "sizes=[3]", 0, 4},
                {"f32[5,4], i64[], i64[]", "sizes=[2,4]", -1, 4}},
};
TN_OP(dynamic_slice);

constexpr auto one_hot_def = Composite<OneHotAttrs>{
    .doc =
        "A new last axis of `num_classes` that is 1 at the index in `x` and 0 elsewhere; all 0 "
        "when the "
        "index is out of bounds, as -1 for no class.",
    .args = {"x"},
    .body = [](const OneHotAttrs& a, const Tensors& in) -> Tensors {
      check_kind("one_hot", integers, in[0].dtype());
      if (a.num_classes < 0) fail("one_hot: a negative number of classes: {}", a.num_classes);
      Tensor classes = tn::iota({a.num_classes});
      Shape shape = in[0].shape();
      shape.push_back(1);
      return {cast_to(tn::equal(tn::reshape(cast_to(in[0], DType::i64), shape), classes), a.dtype)};
    },
    .samples = {{"i64[4]", "num_classes=3", -1, 3}, {"i64[2,3]", "num_classes=4, dtype=i32", 0, 3}},
};
TN_OP(one_hot);

}  // namespace tn::ops
