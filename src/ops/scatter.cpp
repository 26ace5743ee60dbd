// Writing by index: copies of a tensor with some elements replaced or combined.
#include "base/error.h"
#include "ir/sizes.h"
#include "ops/families.h"
#include "ops/index_bounds.h"
#include "ops/indexing.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "ops/slice_attrs.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

struct ScatterAddAttrs {
  Axes axes;
  static constexpr void fields(auto& a, auto&& f) { f("axes", a.axes, required); }
};

struct PutAttrs {
  Axis axis = -1;
  ScatterMode mode = ScatterMode::set;
  static constexpr void fields(auto& a, auto&& f) { f("axis", a.axis), f("mode", a.mode); }
};

struct SegmentAttrs {
  int64_t num_segments = 0;
  static constexpr void fields(auto& a, auto&& f) { f("num_segments", a.num_segments, required); }
};

/// What each mode can combine.
KindSet combinable(ScatterMode mode) {
  if (mode == ScatterMode::set) return any_type;
  return mode == ScatterMode::max || mode == ScatterMode::min ? ordered : every_type;
}

void prepare_scatter(ScatterAttrs& a, Tensors& in) {
  sort_indices("scatter", a.axes, in, 2);
  check_known("scatter", a.outside, a.axes, in, 2);
  check_kind("scatter", combinable(a.mode), in[0].dtype());
  std::vector<TypeRef> types;
  for (size_t i = 2; i < in.size(); ++i) types.push_back(type_of(in[i]));
  Shape points = index_shape("scatter", types);
  Shape shape = indexed_shape("scatter", *type_of(in[0]), a.axes, a.batch_dims, points);
  in[1] = cast_to(in[1], in[0].dtype());
  if (!identical(in[1].shape(), shape)) {
    if (in[1].rank() > shape.rank() || !can_broadcast(in[1].shape(), shape))
      fail("scatter: updates of {} do not fit the indexed shape {}", *type_of(in[1]), shape);
    in[1] = tn::broadcast_to(in[1], shape);
  }
}

Type infer_scatter(const ScatterAttrs& a, Types in) {
  Shape points = index_shape("scatter", in.subspan(2));
  Shape shape = indexed_shape("scatter", *in[0], a.axes, a.batch_dims, points);
  if (!decide_equal(in[1]->shape, shape) || in[1]->dtype != in[0]->dtype)
    fail("scatter: updates of {} do not fit {}{}", *in[1], in[0]->dtype, shape);
  return *in[0];
}

/// A scatter seen from its places: what derivatives read there and add there. They check the
/// indices too, as nothing may compute the scatter itself.
struct Places {
  const ScatterAttrs& a;
  Tensors indices;
  const OutOfRange outside = for_writing(a.outside);
  Places(const ScatterAttrs& attrs, const Tensors& in)
      : a(attrs), indices(in.begin() + 2, in.end()) {}

  /// `x` at the places of the updates; 0 for updates that are dropped.
  Tensor read(const Tensor& x) const {
    return tn::gather(x, indices, a.axes, a.batch_dims, kOutOfRange[static_cast<int>(outside)]);
  }
  /// `x` with `updates` combined into it.
  Tensor write(const Tensor& x, const Tensor& updates, ScatterMode mode) const {
    Tensors operands = indices;
    operands.insert(operands.begin(), {x, updates});
    ScatterAttrs attrs{a.axes, mode, a.batch_dims, outside};
    return call_with(scatter, operands, &attrs)[0];
  }
  Tensor sum(const Tensor& updates, const Shape& shape) const {
    return write(filled(0, updates.dtype(), shape), updates, ScatterMode::add);
  }
};

/// `ct` where the update is the last one written to its place, 0 elsewhere. Every point writes its
/// number; those that find it there again were the last.
Tensor keep_last_writers(const ScatterAttrs& a, const Tensors& in, const Tensor& ct) {
  Shape points, written;
  for (size_t i = 2; i < in.size(); ++i) points = broadcast(points, in[i].shape(), "scatter");
  if (points.elements().is(1)) return ct;
  int batch = static_cast<int>(a.batch_dims), first = a.axes[0].i;
  ScatterAttrs only{{}, ScatterMode::set, a.batch_dims, a.outside};
  for (int k = 0; k < batch; ++k) written.push_back(in[0].shape()[k]);
  for (Axis k : a.axes) {
    only.axes.push_back(written.rank());
    written.push_back(in[0].shape()[k.i]);
  }
  Places places(only, in);
  Tensor number = tn::reshape(tn::iota({points.elements()}), points);
  Tensor last =
      places.read(places.write(filled(-1, DType::i64, written), number, ScatterMode::set));
  Shape shape = points;  // under the shape of the updates
  for (int k = batch; k < first; ++k) shape.insert(batch, 1);
  while (shape.rank() < ct.rank()) shape.push_back(1);
  return tn::where(tn::reshape(tn::equal(last, number), shape), ct, 0);
}

/// The product of the other updates at each update's place. Zeros are counted, not divided by.
Tensor product_of_others(const Places& places, const Tensor& updates, const Shape& shape) {
  Tensor is_zero = tn::equal(updates, 0), nonzero = tn::where(is_zero, 1, updates);
  Tensor ones = filled(1, updates.dtype(), shape);
  Tensor product = places.read(places.write(ones, nonzero, ScatterMode::mul));
  Tensor zeros = places.read(places.sum(cast_to(is_zero, DType::i64), shape));
  Tensor other_zeros = zeros - cast_to(is_zero, DType::i64);
  return tn::where(tn::equal(other_zeros, 0), product / nonzero, 0);
}

/// The share of x and of each update in an extreme: those equal to it share it evenly.
struct Shares {
  Tensor x, updates;
  Shares(const Places& places, const Primal& p) {
    DType type = p.out[0].dtype();
    x = cast_to(tn::equal(p.in[0], p.out[0]), type);
    updates = cast_to(tn::equal(p.in[1], places.read(p.out[0])), type);
    Tensor count = x + places.sum(updates, x.shape());
    x = x / count, updates = updates / tn::maximum(places.read(count), 1);  // 0 where dropped
  }
};

Tensors jvp_scatter(const ScatterAttrs& a, const Primal& p, const Tensors& t) {
  Places places(a, p.in);
  const Shape& shape = p.in[0].shape();
  auto or_zero = [&](size_t k) {
    return t[k].defined() ? t[k] : filled(0, p.in[k].dtype(), p.in[k].shape());
  };
  if (a.mode == ScatterMode::set || a.mode == ScatterMode::add)
    return {places.write(or_zero(0), or_zero(1), a.mode)};
  Tensor by_x, by_updates;
  if (a.mode == ScatterMode::mul) {
    Tensor factor = places.write(filled(1, p.in[1].dtype(), shape), p.in[1], ScatterMode::mul);
    by_x = factor, by_updates = product_of_others(places, p.in[1], shape) * places.read(p.in[0]);
  } else {
    Shares shares(places, p);
    by_x = shares.x, by_updates = shares.updates;
  }
  return {or_zero(0) * by_x + places.sum(or_zero(1) * by_updates, shape)};
}

/// Setting and adding are linear; the other modes are differentiated through these.
Tensors vjp_scatter(const ScatterAttrs& a, const Primal& p, const Tensors& cts) {
  if (a.mode != ScatterMode::set && a.mode != ScatterMode::add) return {};
  Places places(a, p.in);
  const Tensor& ct = cts[0];
  Tensors back(p.in.size());
  back[0] = ct, back[1] = places.read(ct);
  if (a.mode == ScatterMode::set) {
    back[0] = places.write(ct, filled(0, ct.dtype(), {}), ScatterMode::set);
    back[1] = keep_last_writers(a, p.in, back[1]);
  }
  return back;
}

Tensors batch_scatter(const ScatterAttrs& a, const BatchCall& call) {
  BatchedIndices at = batch_indices(a.axes, a.batch_dims, call, 2);
  at.indices.insert(at.indices.begin(), {with_batch(call, 0), with_batch(call, 1)});
  ScatterAttrs attrs{at.axes, a.mode, at.batch_dims, a.outside};
  return emit_all(scatter, at.indices, &attrs);
}

Tensors add_at(const ScatterAddAttrs& a, const Tensors& in) {
  Tensors operands = in;
  for (size_t i = 2; i < in.size() && static_cast<int>(i) - 2 < a.axes.size(); ++i) {
    check_kind("scatter_add", integers, in[i].dtype());
    int axis = normal_axis(a.axes[static_cast<int>(i) - 2], in[0].rank(), "scatter_add");
    operands[i] = wrap_negative("scatter_add", in[i], *type_of(in[0]), axis);
  }
  ScatterAttrs attrs{a.axes, ScatterMode::add};
  return call_with(scatter, operands, &attrs);
}

Tensors put_along(const PutAttrs& a, const Tensors& in) {
  const Type &x = *type_of(in[0]), &at = *type_of(in[1]);
  check_kind("put_along_axis", integers, at.dtype);
  if (x.rank() != at.rank()) fail("put_along_axis: ranks differ: {} and {}", x, at);
  int axis = normal_axis(a.axis, x.rank(), "put_along_axis");
  Shape shape = with_extent(x.shape, axis, at.shape[axis]);
  Tensors operands = {in[0], tn::broadcast_to(in[2], shape)};
  Tensor indices = tn::broadcast_to(wrap_negative("put_along_axis", in[1], x, axis), shape);
  AlongIndices along(indices, axis);
  for (Tensor& t : along.indices) operands.push_back(t);
  ScatterAttrs attrs{along.axes, a.mode, axis};
  return call_with(scatter, operands, &attrs);
}

Tensors sum_segments(const SegmentAttrs& a, const Tensors& in) {
  const Type &x = *type_of(in[0]), &ids = *type_of(in[1]);
  if (ids.rank() != 1 || x.rank() < 1 || !decide_equal(ids.shape[0], x.shape[0]))
    fail("segment_sum: one segment for each row is needed: {} and {}", ids, x);
  if (a.num_segments < 0) fail("segment_sum: a negative number of segments: {}", a.num_segments);
  Tensor zeros = filled(0, x.dtype, with_extent(x.shape, 0, a.num_segments));
  check_bounds("segment_sum", in[1], *type_of(zeros), 0, Negative::is_outside);
  ScatterAttrs attrs{Axes(0), ScatterMode::add};
  return call_with(scatter, {zeros, in[0], in[1]}, &attrs);
}

/// The shape that `a` takes of x.
Shape sliced_shape(const SliceAttrs& a, const Type& x) {
  Shape shape = x.shape;
  for (int i = 0; i < a.axis->size(); ++i) {
    int k = (*a.axis)[i].i;
    shape[k] = slice_extent(a, i);
  }
  return shape;
}

/// A backwards slice of x is a forward one whose update is flipped.
void prepare_slice_update(SliceAttrs& a, Tensors& in) {
  const Type& x = *type_of(in[0]);
  Axes reversed = normalise(a, x, "slice_update");
  for (int i = 0; i < a.axis->size(); ++i) {
    if (!reversed.has((*a.axis)[i].i)) continue;
    Offset n = x.shape[(*a.axis)[i].i];
    Offset start = n - a.stop[i];  // of the same elements, counted forwards
    a.stop[i] = n - a.start[i], a.start[i] = start;
  }
  Shape shape = sliced_shape(a, x);
  in[1] = cast_to(in[1], x.dtype);
  if (in[1].rank() > shape.rank() || !can_broadcast(in[1].shape(), shape))
    fail("slice_update: an update of {} does not fit the slice {}", *type_of(in[1]), shape);
  if (!identical(in[1].shape(), shape)) in[1] = tn::broadcast_to(in[1], shape);
  if (!reversed.empty()) in[1] = tn::flip(in[1], reversed);
}

Type infer_slice_update(const SliceAttrs& a, Types in) {
  Shape shape = sliced_shape(a, *in[0]);
  if (!decide_equal(in[1]->shape, shape) || in[1]->dtype != in[0]->dtype)
    fail("slice_update: an update of {} does not fit {}{}", *in[1], in[0]->dtype, shape);
  return *in[0];
}

Tensor adjoint_slice_update(const SliceAttrs& a, const Tensor& ct, const Tensors& in, int k) {
  if (k == 1) return emit(slice, {ct}, a);
  return emit(slice_update, {ct, filled(0, ct.dtype(), in[1].shape())}, a);
}

/// `x` with `update` where, along each axis k, `to[k] - start[k]` is a place of it times the step.
void lower_update(loop::Lowering& l, const loop::Coords& to, const loop::Coords& start,
                  const Ints& step) {
  loop::Coords from;
  std::vector<std::pair<PolyId, Dim>> bounds;
  S within;
  for (int k = 0; k < l.in[0]->rank(); ++k) {
    PolyId place = l.sub(to[static_cast<size_t>(k)], start[static_cast<size_t>(k)]);
    Dim extent = l.in[1]->shape[k];
    PolyId count = l.number(Dim(step[k]));
    from.push_back(step[k] == 1 ? place : l.b.polys().div(place, count));
    bounds.push_back({from.back(), extent});
    S at = l.b.index(from.back()), here = (at >= 0.0) & (at < l.b.index(l.number(extent)));
    if (step[k] != 1) here = here & (l.b.index(l.b.polys().mod(place, count)) < 1.0);
    within = within.builder ? within & here : here;
  }
  loop::Element x = l.load(0, to), update = l.load(1, from, l.inside(bounds));
  l.store(0, to, within.builder ? loop::select(within, update, x) : update);
}

void lower_slice_update(const SliceAttrs& a, loop::Lowering& l) {
  loop::Coords to = l.loops(l.out[0]->shape), start(to.size(), l.number(Dim(0)));
  Ints step;
  for (size_t k = 0; k < to.size(); ++k) step.push_back(1);
  for (int i = 0; i < a.axis->size(); ++i) {
    int k = (*a.axis)[i].i;
    start[static_cast<size_t>(k)] = l.number(a.start[i].size()), step[k] = (*a.step)[i];
  }
  lower_update(l, to, start, step);
}

/// A start is moved so that the whole update lies inside.
void lower_dynamic_update(const NoAttrs&, loop::Lowering& l) {
  loop::Coords to = l.loops(l.out[0]->shape), start;
  Ints step;
  for (int k = 0; k < l.in[0]->rank(); ++k) {
    Dim places = l.in[0]->shape[k] - l.in[1]->shape[k] + Dim(1);
    start.push_back(l.coordinate(l.load_real(k + 2, {}), places)), step.push_back(1);
  }
  lower_update(l, to, start, step);
}

void prepare_dynamic_update(NoAttrs&, Tensors& in) {
  in[1] = cast_to(in[1], in[0].dtype());
  for (size_t i = 2; i < in.size(); ++i) {
    check_kind("dynamic_update_slice", integers, in[i].dtype());
    in[i] = cast_to(in[i], DType::i64);
  }
}

Type infer_dynamic_update(const NoAttrs&, Types in) {
  const Type &x = *in[0], &update = *in[1];
  if (update.rank() != x.rank() || static_cast<int>(in.size()) != x.rank() + 2)
    fail("dynamic_update_slice: an update of {} and {} starts for {}", update, in.size() - 2, x);
  for (int k = 0; k < x.rank(); ++k) {
    const Type& start = *in[static_cast<size_t>(k) + 2];
    if (start.rank() != 0) fail("dynamic_update_slice: a start must be one integer: {}", start);
    if (!decide_at_least(x.shape[k], update.shape[k]))
      fail("dynamic_update_slice: the update does not fit axis {}: {} ({}) and {} ({})", k,
           update.shape[k], update, x.shape[k], x);
  }
  return x;
}

Tensor adjoint_dynamic_update(const NoAttrs&, const Tensor& ct, const Tensors& in, int k) {
  Tensors starts(in.begin() + 2, in.end());
  if (k == 1) return tn::dynamic_slice(ct, starts, in[1].shape());
  return tn::dynamic_update_slice(ct, filled(0, ct.dtype(), in[1].shape()), starts);
}

/// Where every example begins elsewhere, it is a scatter.
Tensors batch_dynamic_update(const NoAttrs&, const BatchCall& call) {
  Tensor x = with_batch(call, 0), update = with_batch(call, 1);
  Shape shape = x.shape(), sizes = update.shape();
  shape.erase(0), sizes.erase(0);
  BlockStarts starts(shape, sizes, call, 2);
  if (!starts.batched) {
    starts.values.insert(starts.values.begin(), make_scalar(0, DType::i64, false));
    return {tn::dynamic_update_slice(x, update, starts.values)};
  }
  BlockIndices block = index_block(shape, sizes, starts.values);
  for (Axis& k : block.axes) ++k.i;
  return {tn::scatter(x, update, block.indices, block.axes, "set", 1)};
}

}  // namespace

constexpr auto scatter_def = Op<ScatterAttrs>{
    .doc =
        "`x` with the elements at `indices` replaced by `updates`, or combined with them: `mode` "
        "is "
        "set, add, mul, max or min. Indices and axes are those of `gather`, whose result shape "
        "`updates` broadcast to. Elements are taken in row-major order of `updates`, so the last "
        "one written stays. An index out of bounds is an error, which compiled code checks under "
        "`debug_indices` only and drops otherwise. `outside` says that it is always dropped or "
        "clamped; check_drop and check_clamp say what compiled code does without a check.",
    .args = {"x", "updates", "*indices"},
    .prepare = rule<prepare_scatter>,
    .infer = rule<infer_scatter>,
    .jvp = rule<jvp_scatter>,
    .vjp = rule<vjp_scatter>,
    .batch_rule = rule<batch_scatter>,
    .samples = {{"f32[5,4], f32[3,4], i64[3]", "axes=[0]", 0, 3},
                {"f32[5,4], f32[3,2], i64[3,1], i64[2]", "axes=[0,1], mode=add", 0, 3},
                {"f32[5,4], f32[], i64[3]", "axes=[1], mode=max", 0, 3},
                {"f32[2,5,4], f32[2,5,3], i64[2,3]",
                 "axes=[2], mode=mul, batch_dims=1, outside=drop", -1, 4},
                {"f32[2,5], f32[2,6], i64[2,6]", "axes=[1], batch_dims=1, outside=clamp", -2, 6}},
};
TN_OP(scatter);

constexpr auto scatter_add_def = Composite<ScatterAddAttrs>{
    .doc =
        "`x` with `updates` added at `indices`, as `scatter` does it. Negative indices count from "
        "the end; one out of bounds is an error, which compiled code checks under "
        "`debug_indices` only and drops otherwise.",
    .args = {"x", "updates", "*indices"},
    .body = rule<add_at>,
    .samples = {{"f32[5,4], f32[3,4], i64[3]", "axes=[0]", -3, 3}},
};
TN_OP(scatter_add);

constexpr auto put_along_axis_def = Composite<PutAttrs>{
    .doc =
        "`x` with the elements that `take_along_axis` reads replaced by `values`, or combined with "
        "them by `mode`. Negative indices count from the end; one out of bounds is an error, "
        "which compiled code checks under `debug_indices` only and drops otherwise.",
    .args = {"x", "indices", "values"},
    .body = rule<put_along>,
    .samples = {{"f32[3,4], i64[3,2], f32[3,2]", "", 0, 3},
                {"f32[3,4], i64[2,4], f32[]", "axis=0, mode=add", -3, 2}},
};
TN_OP(put_along_axis);

constexpr auto segment_sum_def = Composite<SegmentAttrs>{
    .doc =
        "Row s is the sum of the rows of `x` whose segment in `segment_ids` is s; 0 when there is "
        "none. A segment out of bounds (also a negative one) is an error, which compiled code "
        "checks under `debug_indices` only; otherwise it drops the row.",
    .args = {"x", "segment_ids"},
    .body = rule<sum_segments>,
    .samples = {{"f32[5], i64[5]", "num_segments=4", 0, 3},
                {"f32[5,2], i64[5]", "num_segments=4", 0, 3}},
};
TN_OP(segment_sum);

constexpr auto slice_update_def = Op<SliceAttrs>{
    .doc =
        "`x` with the elements that `slice` takes replaced by `update`, which broadcasts to them.",
    .args = {"x", "update"},
    .prepare = rule<prepare_slice_update>,
    .infer = rule<infer_slice_update>,
    .lower = rule<lower_slice_update>,
    .linear = Linear::jointly,
    .adjoint = rule<adjoint_slice_update>,
    .batch = Batch::aligned,
    .samples = {{"f32[5], f32[3]", "start=[1], stop=[4]"},
                {"f32[5,6], f32[3]", "start=[0,1], stop=[5,6], step=[1,2]"},
                {"f32[5,6], f32[5,3]", "start=[-1], stop=[-7], step=[-2], axis=[-1]"}},
};
TN_OP(slice_update);

constexpr auto dynamic_update_slice_def = Op<>{
    .doc =
        "`x` with the block that begins at `starts` replaced by `update`. A start is clamped so "
        "that "
        "the block lies inside.",
    .args = {"x", "update", "*starts"},
    .prepare = rule<prepare_dynamic_update>,
    .infer = rule<infer_dynamic_update>,
    .lower = rule<lower_dynamic_update>,
    .linear = Linear::jointly,
    .adjoint = rule<adjoint_dynamic_update>,
    .batch_rule = rule<batch_dynamic_update>,
    .samples = {{"f32[5], f32[3], i64[]", "", 0, 4},
                {"f32[5,4], f32[2,4], i64[], i64[]", "", -1, 4}},
};
TN_OP(dynamic_update_slice);

}  // namespace tn::ops
