// Normalisation by mean and variance.
#include "base/error.h"
#include "ir/sizes.h"
#include "ops/families.h"
#include "ops/op_attrs.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

struct RmsNormAttrs {
  double eps = 1e-5;
  static constexpr void fields(auto& a, auto&& f) { f("eps", a.eps); }
};

struct GroupNormAttrs {
  int64_t num_groups = 1;
  double eps = 1e-5;
  Axis axis = -1;
  static constexpr void fields(auto& a, auto&& f) {
    f("num_groups", a.num_groups, required), f("eps", a.eps), f("axis", a.axis);
  }
};

Tensor widened(const Tensor& x) { return x.defined() ? cast_to(x, info(x.dtype()).compute) : x; }

/// Fails unless `given`, when there is one, has the shape of what it scales.
void check_shape(std::string_view op, std::string_view name, const Tensor& given,
                 const Shape& wanted, const Tensor& x) {
  if (given.defined() && !decide_equal(given.shape(), wanted))
    fail("{}: {} must have the shape {}: {} (x {})", op, name, wanted, *type_of(given),
         *type_of(x));
}

/// Operands of one element type. Absent ones stand at the end: a bias without a weight gets ones.
void prepare_scaled(std::string_view op, Tensors& in, size_t weight, const Shape& shape) {
  promote_all(in, op, floats, true);
  check_shape(op, "weight", optional(in, weight), shape, in[0]);
  if (weight + 1 >= in.size() || !in[weight + 1].defined()) return;
  check_shape(op, "bias", in[weight + 1], shape, in[0]);
  if (!in[weight].defined()) in[weight] = filled(Scalar(1.0), in[0].dtype(), shape);
}

/// `x * weight + bias`, each where it is given, under `shape`.
Tensor rescale(Tensor x, const Tensor& weight, const Tensor& bias, const Shape& shape) {
  if (weight.defined()) x = x * tn::reshape(widened(weight), shape);
  if (bias.defined()) x = x + tn::reshape(widened(bias), shape);
  return x;
}

/// Mean 0 and variance 1 over `axes`.
Tensor standardize(const Tensor& x, const Axes& axes, double eps) {
  Tensor centred = x - tn::mean(x, axes, true);
  return centred * tn::rsqrt(tn::mean(tn::square(centred), axes, true) + eps);
}

Shape trailing(const Tensor& x, int64_t count) {
  return {x.shape().end() - count, x.shape().end()};
}

void prepare_layer_norm(LayerNormAttrs& a, Tensors& in) {
  int rank = in[0].rank();
  if (a.normalized_axes < 1 || a.normalized_axes > rank)
    fail("layer_norm: normalized_axes must lie in [1, {}]: {} ({})", rank, a.normalized_axes,
         *type_of(in[0]));
  prepare_scaled("layer_norm", in, 1, trailing(in[0], a.normalized_axes));
}

Tensors layer_norm_body(const LayerNormAttrs& a, const Tensors& in) {
  Axes axes;
  for (int64_t k = in[0].rank() - a.normalized_axes; k < in[0].rank(); ++k)
    axes.push_back(static_cast<int>(k));
  Tensor y = standardize(widened(in[0]), axes, a.eps);
  y = rescale(y, optional(in, 1), optional(in, 2), trailing(in[0], a.normalized_axes));
  return {cast_to(y, in[0].dtype())};
}

void prepare_rms_norm(RmsNormAttrs&, Tensors& in) {
  if (in[0].rank() == 0) fail("rms_norm: a scalar has no axis to normalise: {}", *type_of(in[0]));
  prepare_scaled("rms_norm", in, 1, trailing(in[0], 1));
}

Tensors rms_norm_body(const RmsNormAttrs& a, const Tensors& in) {
  Tensor x = widened(in[0]);
  Tensor y = x * tn::rsqrt(tn::mean(tn::square(x), Axes(x.rank() - 1), true) + a.eps);
  return {cast_to(rescale(y, optional(in, 1), {}, trailing(in[0], 1)), in[0].dtype())};
}

/// One axis of `x`, as a shape that broadcasts along it.
Shape along(const Tensor& x, int axis) {
  Shape shape = Shape::filled(x.rank(), 1);
  shape[axis] = x.shape()[axis];
  return shape;
}

void prepare_batch_norm(BatchNormAttrs& a, Tensors& in) {
  a.axis = normal_axis(a.axis, in[0].rank(), "batch_norm");
  Shape channels{in[0].shape()[a.axis.i]};
  check_shape("batch_norm", "mean", in[1], channels, in[0]);
  check_shape("batch_norm", "var", in[2], channels, in[0]);
  prepare_scaled("batch_norm", in, 3, channels);
}

Tensors batch_norm_body(const BatchNormAttrs& a, const Tensors& in) {
  Shape shape = along(in[0], a.axis.i);
  Tensor scale = tn::rsqrt(widened(in[2]) + a.eps);
  if (optional(in, 3).defined()) scale = scale * widened(in[3]);
  Tensor centred = widened(in[0]) - tn::reshape(widened(in[1]), shape);
  Tensor y = rescale(centred * tn::reshape(scale, shape), {}, optional(in, 4), shape);
  return {cast_to(y, in[0].dtype())};
}

void prepare_group_norm(GroupNormAttrs& a, Tensors& in) {
  const Type& x = *type_of(in[0]);
  if (x.rank() < 2) fail("group_norm: x needs a batch axis and a channel axis: {}", x);
  a.axis = normal_axis(a.axis, x.rank(), "group_norm");
  if (a.axis.i == 0) fail("group_norm: axis 0 is the batch axis: {}", x);
  Dim channels = x.shape[a.axis.i];
  if (a.num_groups < 1 || !decide_divides(a.num_groups, channels))
    fail("group_norm: {} channels do not divide into {} groups: {}", channels, a.num_groups, x);
  prepare_scaled("group_norm", in, 1, {channels});
}

Tensors group_norm_body(const GroupNormAttrs& a, const Tensors& in) {
  const Shape& shape = in[0].shape();
  Shape split = with_extent(shape, a.axis.i, floor_div(shape[a.axis.i], a.num_groups));
  split.insert(a.axis.i, a.num_groups);
  Axes axes;
  for (int k = 1; k < split.rank(); ++k)
    if (k != a.axis.i) axes.push_back(k);
  Tensor y = standardize(tn::reshape(widened(in[0]), split), axes, a.eps);
  y = rescale(tn::reshape(y, shape), optional(in, 1), optional(in, 2), along(in[0], a.axis.i));
  return {cast_to(y, in[0].dtype())};
}

}  // namespace

// Backends may claim these whole; others get the body.
constexpr auto layer_norm_def = Composite<LayerNormAttrs>{
    .doc =
        "`(x - mean) / sqrt(var + eps) * weight + bias` over the last `normalized_axes` axes, "
        "whose shape "
        "`weight` and `bias` have. The variance is that of the population. float16 and bfloat16 "
        "are "
        "computed in float32 and rounded once.",
    .args = {"x", "?weight", "?bias"},
    .recorded = true,
    .prepare = rule<prepare_layer_norm>,
    .body = rule<layer_norm_body>,
    .precision = Precision::full,
    .samples = {{"f32[2,3], f32[3], f32[3]"},
                {"f32[2,3,4]", "eps=0.001"},
                {"f32[2,3,4], f32[3,4]", "normalized_axes=2"}},
};
TN_OP(layer_norm);

constexpr auto rms_norm_def = Composite<RmsNormAttrs>{
    .doc =
        "`x / sqrt(mean(x * x) + eps) * weight` over the last axis, whose size `weight` has. "
        "float16 and "
        "bfloat16 are computed in float32 and rounded once.",
    .args = {"x", "?weight"},
    .recorded = true,
    .prepare = rule<prepare_rms_norm>,
    .body = rule<rms_norm_body>,
    .precision = Precision::full,
    .samples = {{"f32[2,3], f32[3]"}, {"f32[2,3,4]", "eps=0.001"}},
};
TN_OP(rms_norm);

constexpr auto batch_norm_def = Composite<BatchNormAttrs>{
    .doc =
        "`(x - mean) / sqrt(var + eps) * weight + bias` with one value of each per index of "
        "`axis`, the "
        "channels. float16 and bfloat16 are computed in float32 and rounded once.",
    .args = {"x", "mean", "var", "?weight", "?bias"},
    .recorded = true,
    .prepare = rule<prepare_batch_norm>,
    .body = rule<batch_norm_body>,
    .precision = Precision::full,
    .samples = {{"f32[2,3], f32[3], f32[3], f32[3], f32[3]", "", 0.5, 2},
                {"f32[2,3,4], f32[3], f32[3]", "eps=0.001, axis=1", 0.5, 2}},
};
TN_OP(batch_norm);

constexpr auto group_norm_def = Composite<GroupNormAttrs>{
    .doc =
        "Normalises each index of axis 0 and each of `num_groups` runs of channels over everything "
        "else: "
        "`(x - mean) / sqrt(var + eps) * weight + bias`, with one weight and bias per index of "
        "`axis`, "
        "the channels. float16 and bfloat16 are computed in float32 and rounded once.",
    .args = {"x", "?weight", "?bias"},
    .recorded = true,
    .prepare = rule<prepare_group_norm>,
    .body = rule<group_norm_body>,
    .precision = Precision::full,
    .samples = {{"f32[2,3,4], f32[4], f32[4]", "num_groups=2"},
                {"f32[2,6,3]", "num_groups=3, eps=0.001, axis=1"}},
};
TN_OP(group_norm);

}  // namespace tn::ops
