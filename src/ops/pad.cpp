// Padding: elements around a tensor, given or taken from it.
#include "base/error.h"
#include "ir/element.h"
#include "ir/sizes.h"
#include "ops/families.h"
#include "ops/op_attrs.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "ops/slice_attrs.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

struct PadAttrs {
  Offsets pad_width;
  PadMode mode = PadMode::constant;
  Scalar constant_values;
  static constexpr void fields(auto& a, auto&& f) {
    f("pad_width", a.pad_width, required), f("mode", a.mode);
    f("constant_values", a.constant_values);
  }
};

/// One number serves every side, two every axis; recorded are two per axis.
void prepare_pad(PadWithAttrs& a, Tensors& in) {
  const Type& x = *type_of(in[0]);
  int given = a.pad_width.size(), wanted = 2 * x.rank();
  if (given != wanted && given != 1 && given != 2)
    fail("pad: {} widths for {}: give {}, two for every axis, or one", given, x, wanted);
  if (wanted > kMaxRank) unsupported({}, "pad: more than {} axes: {}", kMaxRank / 2, x);
  Offsets widths;
  for (int i = 0; i < wanted; ++i) widths.push_back(a.pad_width[given == wanted ? i : i % given]);
  for (int i = 0; i < wanted; ++i) {
    if (!decide_at_least(widths[i], 0)) fail("pad: a negative width: {} ({})", widths[i], x);
    if (a.mode != PadMode::constant && widths[i] != Offset(0) && x.shape[i / 2].is(0))
      fail("pad: nothing to repeat along axis {}: {}", i / 2, x);
  }
  a.pad_width = widths;
  in[1] = cast_to(in[1], x.dtype);
}

Type infer_pad(const PadWithAttrs& a, Types in) {
  Type out = *in[0];
  if (in[1]->rank() != 0 || in[1]->dtype != out.dtype)
    fail("pad: the value must be one {}: {}", out.dtype, *in[1]);
  for (int k = 0; k < out.rank(); ++k)
    out.shape[k] += a.pad_width[2 * k].size() + a.pad_width[2 * k + 1].size();
  return out;
}

/// Where the element `at` places from the start of an axis of `extent` is found inside it.
PolyId inner_place(PadMode mode, PolyId at, PolyId extent, PolyTable& t) {
  PolyId last = t.add_constant(extent, -1);
  if (mode == PadMode::edge) return t.max(t.min(at, last), t.constant(0));
  if (mode == PadMode::wrap) return t.mod(at, extent);
  PolyId period = t.max(t.scale(last, 2), t.constant(1)), place = t.mod(at, period);
  return t.min(place, t.sub(period, place));
}

void lower_pad(const PadWithAttrs& a, loop::Lowering& l) {
  const Shape& shape = l.in[0]->shape;
  loop::Coords to = l.loops(l.out[0]->shape), from = to;
  std::vector<std::pair<PolyId, Dim>> bounds;
  S within;
  for (int k = 0; k < shape.rank(); ++k) {
    Dim before = a.pad_width[2 * k].size(), after = a.pad_width[2 * k + 1].size();
    if (before.is(0) && after.is(0)) continue;
    auto axis = static_cast<size_t>(k);
    PolyId place = l.sub(to[axis], l.number(before));
    if (a.mode != PadMode::constant) {
      from[axis] = inner_place(a.mode, place, l.number(shape[k]), l.b.polys());
      continue;
    }
    from[axis] = place;
    bounds.push_back({place, shape[k]});
    S at = l.b.index(place), here = (at >= 0.0) & (at < l.b.index(l.number(shape[k])));
    within = within.builder ? within & here : here;
  }
  if (!within.builder) return l.store(0, to, l.load(0, from));
  loop::Element x = l.load(0, from, l.inside(bounds));
  l.store(0, to, loop::select(within, x, l.load(1, {})));
}

/// The elements of `x` in the padded `y`.
SliceAttrs inner_block(const PadWithAttrs& a, const Shape& shape) {
  SliceAttrs block;
  Ints steps;
  Axes axes;
  for (int k = 0; k < shape.rank(); ++k) {
    Offset before = a.pad_width[2 * k];
    block.start.push_back(before), block.stop.push_back(before + shape[k]);
    steps.push_back(1), axes.push_back(k);
  }
  block.step = steps, block.axis = axes;
  return block;
}

/// The same places as a tensor.
Tensor inner_indices(PadMode mode, Dim before, Dim extent, Dim after) {
  Tensor at = tn::iota({before + extent + after}) - before;
  if (mode == PadMode::edge) return tn::clip(at, 0, extent - 1);
  if (mode == PadMode::wrap) return tn::remainder(at, extent);
  Dim period = decide_max(2 * (extent - 1), 1);
  Tensor place = tn::remainder(at, period);
  return tn::where(tn::less(place, extent), place, period - place);
}

/// What was copied outwards comes back, axis by axis.
Tensor add_back(const PadWithAttrs& a, Tensor ct, const Shape& shape) {
  for (int k = 0; k < shape.rank(); ++k) {
    Dim before = a.pad_width[2 * k].size(), after = a.pad_width[2 * k + 1].size();
    if (before.is(0) && after.is(0)) continue;
    Tensor indices = inner_indices(a.mode, before, shape[k], after);
    Tensor zeros = filled(0, ct.dtype(), with_extent(ct.shape(), k, shape[k]));
    ct = tn::scatter(zeros, ct, {indices}, Axes(k), "add");
  }
  return ct;
}

Tensor adjoint_pad(const PadWithAttrs& a, const Tensor& ct, const Tensors& in, int k) {
  const Shape& shape = in[0].shape();
  if (a.mode != PadMode::constant)
    return k == 0 ? add_back(a, ct, shape) : filled(0, ct.dtype(), {});
  SliceAttrs block = inner_block(a, shape);
  if (k == 0) return emit(slice, {ct}, block);
  Tensor around = emit(slice_update, {ct, filled(0, ct.dtype(), shape)}, block);
  return ct.rank() ? tn::sum(around) : around;
}

/// A value for each example is put where padding with ones gives a one.
Tensors batch_pad(const PadWithAttrs& a, const BatchCall& call) {
  PadWithAttrs attrs = a;
  attrs.pad_width.insert(0, 0), attrs.pad_width.insert(0, 0);
  Tensor x = with_batch(call, 0), value = call.in[1];
  if (!call.batched[1] || a.mode != PadMode::constant)
    return {emit(pad_with, {x, call.batched[1] ? filled(0, x.dtype(), {}) : value}, attrs)};
  Shape column{call.size}, shape = x.shape();
  while (column.rank() < x.rank()) column.push_back(1);
  shape.erase(0);
  Tensor around = emit(pad_with, {filled(false, DType::b1, shape), filled(true, DType::b1, {})}, a);
  Tensor padded = emit(pad_with, {x, filled(0, x.dtype(), {})}, attrs);
  return {tn::where(around, tn::reshape(value, column), padded)};
}

}  // namespace

constexpr auto pad_with_def = Op<PadWithAttrs>{
    .doc = "As `pad`, with the value of the new elements as a 0-d tensor.",
    .args = {"x", "value"},
    .prepare = rule<prepare_pad>,
    .infer = rule<infer_pad>,
    .lower = rule<lower_pad>,
    .linear = Linear::jointly,
    .adjoint = rule<adjoint_pad>,
    .batch_rule = rule<batch_pad>,
    .samples = {{"f32[3], f32[]", "pad_width=[1,2]"}, {"f32[2,3], f32[]", "pad_width=[0,1,2,0]"}},
};
TN_OP(pad_with);

constexpr auto pad_def = Composite<PadAttrs>{
    .doc =
        "Adds elements before and after each axis: `pad_width` is one number for all sides, "
        "(before, "
        "after) for all axes, or one such pair for each axis. They are `constant_values` (mode "
        "`constant`), the nearest element (`edge`), a reflection without the edge (`reflect`), or "
        "the "
        "other end (`wrap`). Only `constant` can pad an axis without elements.",
    .args = {"x"},
    .body =
        [](const PadAttrs& a, const Tensors& in) {
          PadWithAttrs attrs{a.pad_width, a.mode};
          check_fits("pad", a.constant_values, in[0].dtype());
          return call_with(pad_with, {in[0], make_scalar(a.constant_values, in[0].dtype(), false)},
                           &attrs);
        },
    .samples = {{"f32[3]", "pad_width=[2]"},
                {"f32[2,3]", "pad_width=[1,0,0,2], constant_values=1"},
                {"f32[2,3]", "pad_width=[1,2], mode=edge"},
                {"f32[4,3]", "pad_width=[2,1], mode=reflect"},
                {"f32[4,3]", "pad_width=[5,1], mode=wrap"}},
};
TN_OP(pad);

}  // namespace tn::ops
