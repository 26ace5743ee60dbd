// Writing by index: copies of a tensor with some elements replaced or combined.
#include <cstring>

#include "base/error.h"
#include "ops/families.h"
#include "ops/indexing.h"
#include "ops/op_decls.h"
#include "ops/scatter_kernel.h"
#include "ops/shapes.h"
#include "ops/slice_attrs.h"
#include "tenon/ops.h"

namespace tn::ops {
namespace {

struct ScatterAttrs {
  Axes axes;
  ScatterMode mode = ScatterMode::set;
  static constexpr void fields(auto& a, auto&& f) {
    f("axes", a.axes, required), f("mode", a.mode);
  }
};

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
  check_kind("scatter", combinable(a.mode), in[0].dtype());
  std::vector<TypeRef> types;
  for (size_t i = 2; i < in.size(); ++i) types.push_back(type_of(in[i]));
  Shape shape = indexed_shape("scatter", *type_of(in[0]), a.axes, index_shape("scatter", types));
  in[1] = cast_to(in[1], in[0].dtype());
  if (!(in[1].shape() == shape)) {
    if (in[1].rank() > shape.rank())
      fail("scatter: updates of {} do not fit the indexed shape {}", *type_of(in[1]), shape);
    in[1] = tn::broadcast_to(in[1], shape);
  }
}

Type infer_scatter(const ScatterAttrs& a, Types in) {
  Shape shape = indexed_shape("scatter", *in[0], a.axes, index_shape("scatter", in.subspan(2)));
  if (!(in[1]->shape == shape) || in[1]->dtype != in[0]->dtype)
    fail("scatter: updates of {} do not fit {}{}", *in[1], in[0]->dtype, shape);
  return *in[0];
}

void run_scatter(const LibraryCall& call) {
  const auto& a = *static_cast<const ScatterAttrs*>(call.attrs);
  const InternedType& x = *call.in_types[0];
  if (x.elements) std::memcpy(call.out[0], call.in[0], static_cast<size_t>(x.bytes()));
  ScatterPlan plan = plan_scatter(x.shape, a.axes, index_shape("scatter", call.in_types.subspan(2)),
                                  call.in_types.subspan(2), call.in + 2, OutOfRange::drop);
  scatter_into(plan, x.dtype, a.mode, call.in[1], call.out[0]);
}

Tensors add_at(const ScatterAddAttrs& a, const Tensors& in) {
  Tensors operands = in;
  for (size_t i = 2; i < in.size() && static_cast<int>(i) - 2 < a.axes.size(); ++i) {
    check_kind("scatter_add", integers, in[i].dtype());
    int axis = normal_axis(a.axes[static_cast<int>(i) - 2], in[0].rank(), "scatter_add");
    operands[i] = wrap_negative(in[i], in[0].shape()[axis]);
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
  Tensor indices = tn::broadcast_to(wrap_negative(in[1], x.shape[axis]), shape);
  for (Tensor& t : along_axis(indices, axis)) operands.push_back(t);
  ScatterAttrs attrs{{}, a.mode};
  for (int k = 0; k < x.rank(); ++k) attrs.axes.push_back(k);
  return call_with(scatter, operands, &attrs);
}

Tensors sum_segments(const SegmentAttrs& a, const Tensors& in) {
  const Type &x = *type_of(in[0]), &ids = *type_of(in[1]);
  if (ids.rank() != 1 || x.rank() < 1 || tn::equal(ids.shape[0], x.shape[0]) != Tri::yes)
    fail("segment_sum: one segment for each row is needed: {} and {}", ids, x);
  if (a.num_segments < 0) fail("segment_sum: a negative number of segments: {}", a.num_segments);
  Tensor zeros = filled(0, x.dtype, with_extent(x.shape, 0, a.num_segments));
  ScatterAttrs attrs{Axes(0), ScatterMode::add};
  return call_with(scatter, {zeros, in[0], in[1]}, &attrs);
}

/// The shape that `a` takes of x.
Shape sliced_shape(const SliceAttrs& a, const Type& x) {
  Shape shape = x.shape;
  for (int i = 0; i < a.axis->size(); ++i) {
    int k = (*a.axis)[i].i;
    shape[k] = slice_extent(a, i, x.shape[k]);
  }
  return shape;
}

/// A backwards slice of x is a forward one whose update is flipped.
void prepare_slice_update(SliceAttrs& a, Tensors& in) {
  const Type& x = *type_of(in[0]);
  Axes reversed = normalise(a, x, "slice_update");
  for (int i = 0; i < a.axis->size(); ++i) {
    if (!reversed.has((*a.axis)[i].i)) continue;
    int64_t n = x.shape[(*a.axis)[i].i].value();
    int64_t start = n - a.stop[i];  // of the same elements, counted forwards
    a.stop[i] = n - a.start[i], a.start[i] = start;
  }
  Shape shape = sliced_shape(a, x);
  in[1] = cast_to(in[1], x.dtype);
  if (in[1].rank() > shape.rank())
    fail("slice_update: an update of {} does not fit the slice {}", *type_of(in[1]), shape);
  if (!(in[1].shape() == shape)) in[1] = tn::broadcast_to(in[1], shape);
  if (!reversed.empty()) in[1] = tn::flip(in[1], reversed);
}

Type infer_slice_update(const SliceAttrs& a, Types in) {
  Shape shape = sliced_shape(a, *in[0]);
  if (!(in[1]->shape == shape) || in[1]->dtype != in[0]->dtype)
    fail("slice_update: an update of {} does not fit {}{}", *in[1], in[0]->dtype, shape);
  return *in[0];
}

void run_slice_update(const LibraryCall& call) {
  const auto& a = *static_cast<const SliceAttrs*>(call.attrs);
  const InternedType &x = *call.in_types[0], &update = *call.in_types[1];
  if (x.elements) std::memcpy(call.out[0], call.in[0], static_cast<size_t>(x.bytes()));
  Block block{update.shape, {}, {}};
  for (int k = 0; k < x.rank(); ++k) block.start.push_back(0), block.step.push_back(1);
  for (int i = 0; i < a.axis->size(); ++i)
    block.start[(*a.axis)[i].i] = a.start[i], block.step[(*a.axis)[i].i] = (*a.step)[i];
  write_block(x, block, call.in[1], call.out[0]);
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
    if (at_least(x.shape[k], update.shape[k]) != Tri::yes)
      fail("dynamic_update_slice: the update does not fit axis {}: {} ({}) and {} ({})", k,
           update.shape[k], update, x.shape[k], x);
  }
  return x;
}

void run_dynamic_update(const LibraryCall& call) {
  const InternedType &x = *call.in_types[0], &update = *call.in_types[1];
  if (x.elements) std::memcpy(call.out[0], call.in[0], static_cast<size_t>(x.bytes()));
  Block block{update.shape, {}, {}};
  for (int k = 0; k < x.rank(); ++k) {
    int64_t last = x.shape[k].value() - update.shape[k].value();
    int64_t start = *static_cast<const int64_t*>(call.in[2 + k]);
    block.start.push_back(std::clamp<int64_t>(start, 0, last)), block.step.push_back(1);
  }
  write_block(x, block, call.in[1], call.out[0]);
}

}  // namespace

constinit const OpDef scatter = Op<ScatterAttrs>{
    .name = "scatter",
    .doc =
        "`x` with the elements at `indices` replaced by `updates`, or combined with them: `mode` "
        "is "
        "set, add, mul, max or min. Indices and axes are those of `gather`, whose result shape "
        "`updates` broadcast to. Elements are taken in row-major order of `updates`, so the last "
        "one written stays. Updates whose index is out of bounds are dropped.",
    .args = {"x", "updates", "*indices"},
    .prepare = rule<prepare_scatter>,
    .infer = rule<infer_scatter>,
    .run = run_scatter,
    .samples = {{"f32[5,4], f32[3,4], i64[3]", "axes=[0]", 0, 3},
                {"f32[5,4], f32[3,2], i64[3,1], i64[2]", "axes=[0,1], mode=add", 0, 3},
                {"f32[5,4], f32[], i64[3]", "axes=[1], mode=max", 0, 3}},
};

constinit const OpDef scatter_add = Composite<ScatterAddAttrs>{
    .name = "scatter_add",
    .doc =
        "`x` with `updates` added at `indices`, as `scatter` does it. Negative indices count from "
        "the end; updates whose index is still out of bounds are dropped.",
    .args = {"x", "updates", "*indices"},
    .body = rule<add_at>,
    .samples = {{"f32[5,4], f32[3,4], i64[3]", "axes=[0]", -3, 3}},
};

constinit const OpDef put_along_axis = Composite<PutAttrs>{
    .name = "put_along_axis",
    .doc =
        "`x` with the elements that `take_along_axis` reads replaced by `values`, or combined with "
        "them by `mode`. Negative indices count from the end; values whose index is still out of "
        "bounds are dropped.",
    .args = {"x", "indices", "values"},
    .body = rule<put_along>,
    .samples = {{"f32[3,4], i64[3,2], f32[3,2]", "", 0, 3},
                {"f32[3,4], i64[2,4], f32[]", "axis=0, mode=add", -3, 2}},
};

constinit const OpDef segment_sum = Composite<SegmentAttrs>{
    .name = "segment_sum",
    .doc =
        "Row s is the sum of the rows of `x` whose segment in `segment_ids` is s; 0 when there is "
        "none. Rows whose segment is out of bounds (also negative) are dropped.",
    .args = {"x", "segment_ids"},
    .body = rule<sum_segments>,
    .samples = {{"f32[5], i64[5]", "num_segments=4", 0, 3},
                {"f32[5,2], i64[5]", "num_segments=4", 0, 3}},
};

constinit const OpDef slice_update = Op<SliceAttrs>{
    .name = "slice_update",
    .doc =
        "`x` with the elements that `slice` takes replaced by `update`, which broadcasts to them.",
    .args = {"x", "update"},
    .prepare = rule<prepare_slice_update>,
    .infer = rule<infer_slice_update>,
    .run = run_slice_update,
    .samples = {{"f32[5], f32[3]", "start=[1], stop=[4]"},
                {"f32[5,6], f32[3]", "start=[0,1], stop=[5,6], step=[1,2]"},
                {"f32[5,6], f32[5,3]", "start=[-1], stop=[-7], step=[-2], axis=[-1]"}},
};

constinit const OpDef dynamic_update_slice = Op<>{
    .name = "dynamic_update_slice",
    .doc =
        "`x` with the block that begins at `starts` replaced by `update`. A start is clamped so "
        "that "
        "the block lies inside.",
    .args = {"x", "update", "*starts"},
    .prepare = rule<prepare_dynamic_update>,
    .infer = rule<infer_dynamic_update>,
    .run = run_dynamic_update,
    .samples = {{"f32[5], f32[3], i64[]", "", 0, 4},
                {"f32[5,4], f32[2,4], i64[], i64[]", "", -1, 4}},
};

}  // namespace tn::ops
