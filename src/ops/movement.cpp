// The movement primitives: views that read an operand in another order.
#include <algorithm>

#include "base/error.h"
#include "ir/sizes.h"
#include "ops/families.h"
#include "ops/op_attrs.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "ops/slice_attrs.h"
#include "tenon/ops.h"

namespace tn::ops {
namespace {

void prepare_reshape(ShapeAttrs& a, Tensors& in) {
  const Type& x = *type_of(in[0]);
  // With an extent of 0 the product is 0, however large the others are.
  bool empty = std::ranges::any_of(a.shape, [](Dim d) { return d.is(0); });
  Dim total = x.shape.elements(), known = empty ? 0 : 1;
  int left = -1;
  for (int k = 0; k < a.shape.rank(); ++k) {
    if (!a.shape[k].is_inferred()) {
      if (!empty) known *= a.shape[k];
    } else {
      if (left >= 0) fail("reshape: only one extent may be -1: {} ({})", a.shape, x);
      left = k;
    }
  }
  if (left >= 0) {
    std::optional<Dim> rest = divided(total, known);
    if (!rest) fail("reshape: {} elements do not divide into {}: {}", total, a.shape, x);
    a.shape[left] = *rest;
  } else if (!decide_equal(total, known)) {
    fail("reshape: the number of elements differs: {} ({}) and {} ({})", total, x, known, a.shape);
  }
}

void prepare_permute(PermAttrs& a, Tensors& in) {
  int rank = in[0].rank();
  if (!a.axes) {
    a.axes = Perm();
    for (int k = rank - 1; k >= 0; --k) a.axes.value.push_back(k);
  }
  a.axes.value = normal_perm(*a.axes, rank, "permute_dims");
}

View view_of(View::Kind kind, const Shape& shape) {
  View view;
  view.kind = kind, view.shape = shape;
  return view;
}

View view_permuted(const PermAttrs& a, const Type& x) {
  View view = view_of(View::Kind::permute, {});
  view.perm = *a.axes;
  for (Axis k : *a.axes) view.shape.push_back(x.shape[k.i]);
  return view;
}

/// Recorded broadcasts keep the rank: unit axes come in front by a reshape.
void prepare_broadcast(ShapeAttrs& a, Tensors& in) {
  const Type& x = *type_of(in[0]);
  bool fits = x.rank() <= a.shape.rank();
  for (int k = 0; fits && k < x.rank(); ++k) {
    Dim to = a.shape[a.shape.rank() - x.rank() + k];
    fits = x.shape[k].is(1) || decide_equal(x.shape[k], to) || decide_equal(x.shape[k], 1);
  }
  for (Dim d : a.shape) fits = fits && !d.is_negative();
  if (!fits) fail("broadcast_to: {} does not broadcast to {}: {}", x.shape, a.shape, x);
  in[0] = with_unit_axes(in[0], a.shape);
  if (x.rank() < a.shape.rank())
    in[0] = emit(reshape, {in[0]}, ShapeAttrs{with_leading_ones(in[0].shape(), a.shape.rank())});
}

void prepare_slice(SliceAttrs& a, Tensors& in) {
  Axes reversed = normalise(a, *type_of(in[0]), "slice");
  if (!reversed.empty()) in[0] = emit(flip, {in[0]}, FlipAttrs{reversed});
}

View view_slice(const SliceAttrs& a, const Type& x) {
  View view = view_of(View::Kind::slice, x.shape);
  for (int k = 0; k < x.rank(); ++k) {
    view.start.push_back(0);
    view.step.push_back(1);
  }
  for (int i = 0; i < a.axis->size(); ++i) {
    int k = (*a.axis)[i].i;
    view.start[k] = a.start[i], view.step[k] = (*a.step)[i];
    view.shape[k] = slice_extent(a, i);
  }
  return view;
}

}  // namespace

Axes normalise(SliceAttrs& a, const Type& x, std::string_view op) {
  int count = a.start.size();
  if (!a.axis) {
    a.axis = Axes();
    for (int k = 0; k < count; ++k) a.axis.value.push_back(k);
  }
  if (!a.step) {
    a.step = Ints();
    for (int k = 0; k < count; ++k) a.step.value.push_back(1);
  }
  if (a.stop.size() != count || a.step->size() != count || a.axis->size() != count)
    fail("{}: start, stop, step and axis differ in length: {}, {}, {} and {} ({})", op, count,
         a.stop.size(), a.step->size(), a.axis->size(), x);
  SliceAttrs out;
  out.step = Ints();
  Axes sorted = normal_axes(a.axis, x.rank(), op), reversed;
  for (Axis k : sorted) {
    int i = 0;
    while (normal_axis((*a.axis)[i], x.rank(), op) != k.i) ++i;
    SliceBounds b = canonical_bounds({a.start[i], a.stop[i], (*a.step)[i]}, x.shape[k.i], op);
    if ((*a.step)[i] < 0) reversed.push_back(k);
    out.start.push_back(b.start), out.stop.push_back(b.stop), out.step.value.push_back(b.step);
  }
  out.axis = sorted;
  a = out;
  return reversed;
}

/// a >= b, which outside of a trace must be known.
static bool reaches(Offset a, Offset b, std::string_view op) {
  bool yes = decide_at_least(a, b);
  if (yes || SizeHints::current() || decide_at_least(b, a + 1)) return yes;
  unsupported({"bound the sizes, or give them values"},
              "{}: whether {} lies before {} depends on the sizes", op, a, b);
}

SliceBounds canonical_bounds(SliceBounds b, Dim extent, std::string_view op) {
  if (b.step == 0) fail("{}: a step must not be 0", op);
  // Before the first element: 0 going up, -1 going down; past the last: n and n-1.
  bool up = b.step > 0;
  Offset low = up ? 0 : -1, last = Offset(extent) - 1, high = up ? Offset(extent) : last;
  auto place = [&](Offset at) {
    if (!reaches(at, 0, op)) at = at + extent;
    if (!reaches(at, low, op)) return low;
    return reaches(high, at, op) ? at : high;
  };
  Offset start = place(b.start), stop = place(b.stop);
  int64_t step = b.step;
  if (!up) {
    start = last - start, stop = last - stop;
    step = step == INT64_MIN ? INT64_MAX : -step;
  }
  // What is right for every extent, also where nothing is left, is not asked.
  bool open = !(stop - start).is_const();
  if (step == 1 && open && at_least(stop.size(), start.size()) == Tri::yes) return {start, stop, 1};
  if (decide_at_least(start, stop)) return {0, 0, 1};
  if (!SizeHints::current()) reaches(stop, start, op);  // then what follows is right when empty
  Dim before_last = floor_div((stop - start - 1).size(), step) * step;
  return {start, start + before_last + 1, before_last.is(0) ? 1 : step};
}

Dim slice_extent(const SliceAttrs& a, int i) {
  Offset span = a.stop[i] - a.start[i];
  if (span.is_const() && span.raw <= 0) return 0;
  return floor_div((span - 1).size(), (*a.step)[i]) + 1;
}

constexpr auto copy_def = Movement<NoAttrs>{
    .doc = "`x` itself, as a tensor of its own to transforms such as `grad`.",
    .view = [](const NoAttrs&, const Type& x) { return view_of(View::Kind::reshape, x.shape); },
    .adjoint = [](const NoAttrs&, const Tensor& ct, const Tensor&) { return ct; },
    .samples = {{"f32[2,3]"}, {"f32[]"}},
};
TN_OP(copy);

constexpr auto reshape_def = Movement<ShapeAttrs>{
    .doc =
        "The same elements in row-major order under another shape. One extent may be -1: it takes "
        "what is left.",
    .aliases = {"view"},
    .prepare = rule<prepare_reshape>,
    .view = [](const ShapeAttrs& a, const Type&) { return view_of(View::Kind::reshape, a.shape); },
    .adjoint = [](const ShapeAttrs&, const Tensor& ct,
                  const Tensor& x) { return emit(reshape, {ct}, ShapeAttrs{x.shape()}); },
    .samples = {{"f32[2,3]", "shape=[3,2]"},
                {"f32[2,3,4]", "shape=[-1,4]"},
                {"f32[]", "shape=[1,1]"}},
};
TN_OP(reshape);

constexpr auto permute_dims_def = Movement<PermAttrs>{
    .doc =
        "The axes in another order: axis k of the result is axis `axes[k]` of `x`. Without `axes` "
        "the order is reversed.",
    .aliases = {"transpose", "permute"},
    .prepare = rule<prepare_permute>,
    .view = rule<view_permuted>,
    .adjoint =
        [](const PermAttrs& a, const Tensor& ct, const Tensor& x) {
          Perm back = *a.axes;
          for (int k = 0; k < x.rank(); ++k) back[(*a.axes)[k].i] = k;
          return emit(permute_dims, {ct}, PermAttrs{back});
        },
    .samples = {{"f32[2,3]"}, {"f32[2,3,4]", "axes=[2,0,1]"}, {"f32[2,3,4]", "axes=[0,-1,1]"}},
};
TN_OP(permute_dims);

constexpr auto broadcast_to_def = Movement<ShapeAttrs>{
    .doc = "Repeats axes of extent 1, and new axes in front, to reach `shape`.",
    .prepare = rule<prepare_broadcast>,
    .view = [](const ShapeAttrs& a,
               const Type&) { return view_of(View::Kind::broadcast, a.shape); },
    .adjoint =
        [](const ShapeAttrs& a, const Tensor& ct, const Tensor& x) {
          Axes repeated;
          for (int k = 0; k < x.rank(); ++k)
            if (!decide_equal(x.shape()[k], a.shape[k])) repeated.push_back(k);
          return repeated.empty() ? ct : tn::sum(ct, repeated, {}, true);
        },
    .samples = {{"f32[3]", "shape=[2,3]"},
                {"f32[2,1,3]", "shape=[4,2,5,3]"},
                {"f32[]", "shape=[2]"}},
};
TN_OP(broadcast_to);

constexpr auto slice_def = Movement<SliceAttrs>{
    .doc =
        "Elements `start`, `start + step`, … before `stop` of each axis in `axis`; of the first "
        "axes "
        "when it is left out. Bounds are read as Python does: negative ones count from the end, "
        "those beyond it are clamped, a negative step goes backwards.",
    .prepare = rule<prepare_slice>,
    .view = rule<view_slice>,
    .adjoint =
        [](const SliceAttrs& a, const Tensor& ct, const Tensor& x) {
          return emit(slice_update, {filled(Scalar(0), ct.dtype(), x.shape()), ct}, a);
        },
    .samples = {{"f32[5]", "start=[1], stop=[4]"},
                {"f32[5,6]", "start=[0,1], stop=[5,6], step=[1,2]"},
                {"f32[5,6]", "start=[-1], stop=[-7], step=[-2], axis=[-1]"}},
};
TN_OP(slice);

constexpr auto flip_def = Movement<FlipAttrs>{
    .doc = "Reverses the order of the elements along `axis`, along all axes when it is left out.",
    .prepare = [](FlipAttrs& a,
                  Tensors& in) { a.axis = normal_axes(a.axis, in[0].rank(), "flip"); },
    .view =
        [](const FlipAttrs& a, const Type& x) {
          View view = view_of(View::Kind::reverse, x.shape);
          view.axes = *a.axis;
          return view;
        },
    .adjoint = [](const FlipAttrs& a, const Tensor& ct,
                  const Tensor&) { return emit(flip, {ct}, a); },
    .samples = {{"f32[2,3]"}, {"f32[2,3,4]", "axis=[-1]"}, {"f32[2,3,4]", "axis=[0,2]"}},
};
TN_OP(flip);

}  // namespace tn::ops
