// Weighted means, covariances and correlations.
#include "base/error.h"
#include "ir/sizes.h"
#include "ops/families.h"
#include "ops/known_values.h"
#include "ops/matrices.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

struct CovAttrs {
  bool rowvar = true, bias = false;
  Maybe<int64_t> ddof;
  static constexpr void fields(auto& a, auto&& f) {
    f("rowvar", a.rowvar), f("bias", a.bias), f("ddof", a.ddof);
  }
};

struct CorrcoefAttrs {
  bool rowvar = true;
  static constexpr void fields(auto& a, auto&& f) { f("rowvar", a.rowvar); }
};

/// Weights of `axes`, in the order they were given, along those axes of `x`.
Tensor spread_weights(const Tensor& weights, const Tensor& x, const Axes& axes) {
  if (decide_equal(weights.shape(), x.shape())) return weights;
  if (weights.rank() != axes.size())
    fail("average: weights have the shape of x or of the axes averaged over: {} and {}",
         *type_of(weights), *type_of(x));
  Shape shape = Shape::filled(x.rank(), 1);
  Perm order;  // of the axes of the weights, as those of x follow each other
  for (int k = 0; k < x.rank(); ++k)
    for (int i = 0; i < axes.size(); ++i) {
      if (normal_axis(axes[i], x.rank(), "average") != k) continue;
      order.push_back(i), shape[k] = weights.shape()[i];
      if (!decide_equal(shape[k], x.shape()[k]))
        fail("average: weights do not fit axis {}: {} and {}", k, *type_of(weights), *type_of(x));
    }
  return tn::broadcast_to(tn::reshape(tn::permute_dims(weights, order), shape), x.shape());
}

Tensors average_body(const ReduceAttrs& a, const Tensors& in) {
  Tensors both = in;
  DType type = promote_all(both, "average", every_type, true);
  Axes axes = normal_axes(a.axis, in[0].rank(), "average");
  Tensor x = cast_to(both[0], info(type).compute), weights = optional(both, 1);
  if (!weights.defined()) {
    Tensor mean = tn::mean(x, axes, a.keepdims);
    Dim count = extent_of(x.shape(), axes);
    return {cast_to(mean, type),
            tn::broadcast_to(cast_to(value_of(count, DType::i64), type), mean.shape())};
  }
  weights = spread_weights(cast_to(weights, x.dtype()), x, a.axis ? *a.axis : axes);
  Tensor total = tn::sum(weights, axes, {}, a.keepdims);
  if (is_known_false(total != 0))
    fail("average: the weights add up to 0: {} ({})", *type_of(in[1]), *type_of(in[0]));
  return {cast_to(tn::sum(x * weights, axes, {}, a.keepdims) / total, type), cast_to(total, type)};
}

/// Variables as rows.
Tensor as_variables(std::string_view op, const Tensor& x, bool rowvar, bool first) {
  if (x.rank() > 2) fail("{}: at most two axes are needed: {}", op, *type_of(x));
  Tensor rows = tn::atleast_2d(x);
  bool turned = !rowvar && (first ? x.rank() > 1 : !decide_equal(rows.shape()[0], 1));
  return turned ? tn::matrix_transpose(rows) : rows;
}

Tensor checked_weights(const Tensor& weights, std::string_view name, bool whole, Dim count,
                       DType type) {
  if (!weights.defined()) return weights;
  if (weights.rank() != 1 || !decide_equal(weights.shape()[0], count))
    fail("cov: {} need one number for each of {} observations: {}", name, count, *type_of(weights));
  check_kind("cov", ordered, weights.dtype());
  Tensor real = cast_to(weights, real_of(type)), broken = real < 0;
  if (whole) broken = broken | (real != tn::round(real));
  check_values("cov", format("{} must be {} and not negative", name, whole ? "whole" : "real"),
               weights, tn::logical_not(broken));
  return real;
}

/// The products of what is apart from the mean, over the number of observations less `ddof`.
Tensor covariance(std::string_view op, const CovAttrs& a, const Tensors& in) {
  Tensors both{in[0]};
  if (optional(in, 1).defined()) both.push_back(in[1]);
  DType type = promote_all(both, op, every_type, true), wide = info(type).compute;
  Tensor x = cast_to(as_variables(op, both[0], a.rowvar, true), wide);
  if (both.size() > 1)
    x = tn::concat({x, cast_to(as_variables(op, both[1], a.rowvar, false), wide)}, 0);
  Dim count = x.shape()[1];
  Tensor times = checked_weights(optional(in, 2), "fweights", true, count, wide);
  Tensor weights = checked_weights(optional(in, 3), "aweights", false, count, wide);
  Tensor both_weights = times.defined() && weights.defined() ? times * weights
                        : times.defined()                    ? times
                                                             : weights;
  auto ddof = static_cast<double>(a.ddof.value_or(a.bias ? 0 : 1));
  Tensor sum = cast_to(value_of(count, DType::f64), real_of(wide)), mean;
  if (both_weights.defined()) {
    sum = tn::sum(both_weights);
    mean = tn::sum(x * both_weights, Axes(1), {}, true) / sum;
  } else {
    mean = tn::mean(x, Axes(1), true);
  }
  Tensor lost = weights.defined() ? tn::sum(both_weights * weights) / sum : Tensor();
  Tensor over = sum - (lost.defined() ? lost * ddof : make_scalar(ddof, real_of(wide), false));
  Tensor apart = x - mean, weighted = both_weights.defined() ? apart * both_weights : apart;
  Tensor products = tn::matmul(apart, adjoint_of(weighted));
  Tensor found = cast_to(products / tn::maximum(over, 0.0), type);
  return tn::squeeze(found);
}

Tensors corrcoef_body(const CorrcoefAttrs& a, const Tensors& in) {
  Tensor c = covariance("corrcoef", {a.rowvar, false, {}}, in);
  if (c.rank() == 0) return {c / c};
  Tensor spread = tn::sqrt(tn::real(tn::diagonal(c)));
  c = c / as_column(spread) / as_row(spread);
  if (!is_complex(c.dtype())) return {tn::clip(c, -1, 1)};
  return {cast_to(tn::make_complex(tn::clip(tn::real(c), -1, 1), tn::clip(tn::imag(c), -1, 1)),
                  c.dtype())};
}

}  // namespace

constexpr auto weighted_mean_def = Composite<ReduceAttrs>{
    .doc =
        "The mean over `axis` with `weights`, and the sum of the weights, which is the number of "
        "elements when there are none. Weights have the shape of `x`, or of the axes averaged "
        "over. Integers become float32.",
    .args = {"x", "?weights"},
    .results = {"mean", "sum_of_weights"},
    .body = rule<average_body>,
    .precision = Precision::full,
    .samples = {{"f32[2,3]"},
                {"f32[2,3], f32[2,3]", "", 1, 2},
                {"f32[2,3], f32[3]", "axis=[-1], keepdims=true", 1, 2}},
};
TN_OP(weighted_mean);

constexpr auto cov_def = Composite<CovAttrs>{
    .doc =
        "The covariances of variables, which are the rows of `x` and `y`, or the columns unless "
        "`rowvar`. The sums are divided by the number of observations less `ddof`: 1, or 0 with "
        "`bias`. `fweights` say how often each observation counts, `aweights` how much; known ones "
        "must not be negative.",
    .args = {"x", "?y", "?fweights", "?aweights"},
    .body = [](const CovAttrs& a, const Tensors& in) -> Tensors {
      return {covariance("cov", a, in)};
    },
    .precision = Precision::full,
    .samples = {{"f32[3,5]"},
                {"f32[6]"},
                {"f32[5,3]", "rowvar=false, bias=true"},
                {"f32[2,5], f32[2,5]", "ddof=2"}},
};
TN_OP(cov);

constexpr auto corrcoef_def = Composite<CorrcoefAttrs>{
    .doc = "The correlations of variables: `cov` divided by the standard deviations of both.",
    .args = {"x", "?y"},
    .body = rule<corrcoef_body>,
    .precision = Precision::full,
    .samples = {{"f32[3,5]"}, {"f32[6], f32[6]"}, {"f32[5,2]", "rowvar=false"}},
};
TN_OP(corrcoef);

}  // namespace tn::ops
