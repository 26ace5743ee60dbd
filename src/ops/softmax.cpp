// Exponentials scaled to sum to one, and the logarithm of their sum.
#include <limits>

#include "base/error.h"
#include "ops/families.h"
#include "ops/op_attrs.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

/// The last axis when none is given; of a scalar none at all.
void prepare_softmax(std::string_view op, SoftmaxAttrs& a, Tensors& in) {
  promote_all(in, op, floats, true);
  if (!a.axis) a.axis = in[0].rank() ? Axes(-1) : Axes();
  a.axis = normal_axes(a.axis, in[0].rank(), op);
}

bool is_empty(const Tensor& x, const Axes& axes) { return extent_of(x.shape(), axes).is(0); }

Tensors softmax_body(const SoftmaxAttrs& a, const Tensors& in) {
  if (is_empty(in[0], *a.axis)) return {tn::positive(in[0])};
  Tensor x = cast_to(in[0], info(in[0].dtype()).compute);
  Tensor e = tn::exp(x - tn::max(x, *a.axis, true));
  return {cast_to(e / tn::sum(e, *a.axis, {}, true), in[0].dtype())};
}

Tensors log_softmax_body(const SoftmaxAttrs& a, const Tensors& in) {
  if (is_empty(in[0], *a.axis)) return {tn::positive(in[0])};
  Tensor x = cast_to(in[0], info(in[0].dtype()).compute);
  Tensor shifted = x - tn::max(x, *a.axis, true);
  Tensor total = tn::log(tn::sum(tn::exp(shifted), *a.axis, {}, true));
  return {cast_to(shifted - total, in[0].dtype())};
}

// In the derivatives an element at -inf has no share and does not move: a line of -inf only, where
// the value is no number, has gradient 0.

/// `share` without the elements of `x` at -inf.
Tensor share_of_finite(const Tensor& x, const Tensor& share) {
  return tn::where(tn::equal(x, kMinusInfinity), 0, share);
}

/// y·(t - sum(y·t)).
Tensors jvp_softmax(const SoftmaxAttrs& a, const Primal& p, const Tensors& given) {
  DType type = p.in[0].dtype(), wide = info(type).compute;
  Tensor t = cast_to(given[0], wide), y = share_of_finite(p.in[0], cast_to(p.out[0], wide));
  return {cast_to(y * (t - tn::sum(y * t, *a.axis, {}, true)), type)};
}

/// t - sum(exp(y)·t).
Tensors jvp_log_softmax(const SoftmaxAttrs& a, const Primal& p, const Tensors& given) {
  DType type = p.in[0].dtype(), wide = info(type).compute;
  Tensor t = share_of_finite(p.in[0], cast_to(given[0], wide));
  Tensor y = share_of_finite(p.in[0], tn::exp(cast_to(p.out[0], wide)));
  return {cast_to(t - tn::sum(y * t, *a.axis, {}, true), type)};
}

/// sum(softmax(x)·t): exp(x - y) would lose what y lost in rounding.
Tensors jvp_logsumexp(const ReduceAttrs& a, const Primal& p, const Tensors& given) {
  DType type = p.in[0].dtype(), wide = info(type).compute;
  Tensor x = cast_to(p.in[0], wide), share = share_of_finite(x, tn::softmax(x, *a.axis));
  return {cast_to(tn::sum(share * cast_to(given[0], wide), *a.axis, {}, a.keepdims), type)};
}

void prepare_logsumexp(ReduceAttrs& a, Tensors& in) {
  promote_all(in, "logsumexp", floats, true);
  a.axis = normal_axes(a.axis, in[0].rank(), "logsumexp");
}

Tensors logsumexp_body(const ReduceAttrs& a, const Tensors& in) {
  Tensor x = cast_to(in[0], info(in[0].dtype()).compute), result;
  if (is_empty(x, *a.axis)) {
    result = tn::log(tn::sum(x, *a.axis, {}, true));
  } else {
    // An infinite shift would turn -inf and inf into NaN; without a shift they come out right.
    Tensor largest = tn::max(x, *a.axis, true);
    Tensor shift = tn::where(tn::isfinite(largest), largest, 0.0);
    result = tn::log(tn::sum(tn::exp(x - shift), *a.axis, {}, true)) + shift;
  }
  result = cast_to(result, in[0].dtype());
  return {a.keepdims ? result : tn::reshape(result, without_axes(x.shape(), *a.axis))};
}

}  // namespace

// Backends may claim these whole; others get the body.
constexpr auto softmax_def = Composite<SoftmaxAttrs>{
    .doc =
        "`exp(x)` scaled to sum to one along `axis`, the last one when it is left out. Where every "
        "element is -inf, or one is inf or NaN, the result is NaN. float16 and bfloat16 are "
        "computed "
        "in float32; integers become float32.",
    .args = {"x"},
    .recorded = true,
    .prepare = [](SoftmaxAttrs& a, Tensors& in) { prepare_softmax("softmax", a, in); },
    .body = rule<softmax_body>,
    .jvp = rule<jvp_softmax>,
    .precision = Precision::full,
    .batch = Batch::aligned,
    .samples = {{"f32[2,3]"}, {"f32[2,3,4]", "axis=[0,-1]"}, {"f32[5]", "axis=[0]", -50, 50}},
};
TN_OP(softmax);

constexpr auto log_softmax_def = Composite<SoftmaxAttrs>{
    .doc =
        "The logarithm of `softmax(x)` along `axis`, the last one when it is left out, without its "
        "overflow. Where every element is -inf, or one is inf or NaN, the result is NaN. float16 "
        "and "
        "bfloat16 are computed in float32; integers become float32.",
    .args = {"x"},
    .recorded = true,
    .prepare = [](SoftmaxAttrs& a, Tensors& in) { prepare_softmax("log_softmax", a, in); },
    .body = rule<log_softmax_body>,
    .jvp = rule<jvp_log_softmax>,
    .precision = Precision::full,
    .batch = Batch::aligned,
    .samples = {{"f32[2,3]"}, {"f32[2,3,4]", "axis=[0,-1]"}, {"f32[5]", "axis=[0]", -50, 50}},
};
TN_OP(log_softmax);

constexpr auto logsumexp_def = Composite<ReduceAttrs>{
    .doc =
        "`log(sum(exp(x)))` over `axis`, over all axes when it is left out, without overflow. Of "
        "no "
        "elements, or of -inf only, it is -inf; an inf gives inf and NaN gives NaN. float16 and "
        "bfloat16 are computed in float32; integers become float32.",
    .args = {"x"},
    .recorded = true,
    .prepare = rule<prepare_logsumexp>,
    .body = rule<logsumexp_body>,
    .jvp = rule<jvp_logsumexp>,
    .precision = Precision::full,
    .batch = Batch::aligned,
    .samples = {{"f32[2,3]"},
                {"f32[2,3,4]", "axis=[0,-1], keepdims=true"},
                {"f32[5]", "axis=[0]", -200, 200},
                {"f32[]"}},
};
TN_OP(logsumexp);

}  // namespace tn::ops
