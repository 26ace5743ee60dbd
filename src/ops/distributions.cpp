// Continuous distributions, as functions of random bits. Where a parameter moves or stretches the
// result, derivatives go through it.
#include <cmath>
#include <limits>

#include "base/error.h"
#include "ir/sizes.h"
#include "ops/draws.h"
#include "ops/families.h"
#include "ops/op_decls.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

struct DrawAttrs {
  Shape shape;
  DType dtype = DType::f32;
  static constexpr void fields(auto& a, auto&& f) { f("shape", a.shape), f("dtype", a.dtype); }
};

/// Of parameters alone a result has the shape to which they broadcast.
struct FittedAttrs {
  Maybe<Shape> shape;
  DType dtype = DType::f32;
  static constexpr void fields(auto& a, auto&& f) { f("shape", a.shape), f("dtype", a.dtype); }
};

void check_draw(std::string_view op, const DrawAttrs& a, const Tensor& key,
                KindSet accepted = floats) {
  check_one_key(op, key);
  check_sizes(op, a.shape);
  check_kind(op, accepted, a.dtype);
}

/// loc + scale·x.
Tensor placed(std::string_view op, const DrawAttrs& a, const Tensor& x, const Tensor& loc,
              const Tensor& scale) {
  Tensor by = parameter(op, "scale", scale, a.shape, a.dtype);
  Tensor from = parameter(op, "loc", loc, a.shape, a.dtype);
  Tensor scaled = is_number(by, 1) ? x : x * by;
  return is_number(from, 0) ? scaled : scaled + from;
}

Tensor uniform_body(const DrawAttrs& a, const Tensors& in) {
  check_draw("random_uniform", a, in[0]);
  Tensor low = parameter("random_uniform", "low", in[1], a.shape, a.dtype);
  Tensor high = parameter("random_uniform", "high", in[2], a.shape, a.dtype);
  return draw_between(in[0], a.shape, a.dtype, low, high);
}

/// A complex number has parts of variance 1/2.
Tensor normal_body(const DrawAttrs& a, const Tensors& in) {
  check_draw("random_normal", a, in[0], inexact);
  Tensor x;
  if (is_complex(a.dtype)) {
    Tensors keys = split_key(in[0], 2);
    DType part = real_of(a.dtype);
    x = tn::make_complex(draw_normal(keys[0], a.shape, part), draw_normal(keys[1], a.shape, part)) /
        std::sqrt(2.0);
  } else {
    x = draw_normal(in[0], a.shape, a.dtype);
  }
  return placed("random_normal", a, x, in[1], in[2]);
}

/// The inverse of the distribution function between those of the bounds, kept inside them.
Tensor truncated_normal_body(const FittedAttrs& given, const Tensors& in) {
  constexpr std::string_view op = "random_truncated_normal";
  Shape shape = given.shape ? *given.shape : broadcast(in[1].shape(), in[2].shape(), op);
  DrawAttrs a{shape, given.dtype};
  check_draw(op, a, in[0]);
  Tensor lower = parameter(op, "lower", in[1], a.shape, a.dtype);
  Tensor upper = parameter(op, "upper", in[2], a.shape, a.dtype);
  Tensor root = make_scalar(std::sqrt(2.0), a.dtype, false);
  Tensor u = draw_between(in[0], a.shape, a.dtype, tn::erf(lower / root), tn::erf(upper / root));
  double inf = std::numeric_limits<double>::infinity();
  return tn::clip(tn::erfinv(u) * root, tn::nextafter(tn::stop_gradient(lower), inf),
                  tn::nextafter(tn::stop_gradient(upper), -inf));
}

/// The mean plus the lower factor of the covariance times standard normal numbers.
Tensor multivariate_normal_body(const FittedAttrs& a, const Tensors& in) {
  constexpr std::string_view op = "random_multivariate_normal";
  const Type &mean = *type_of(in[1]), &cov = *type_of(in[2]);
  bool fits = mean.rank() >= 1 && cov.rank() >= 2 &&
              decide_equal(cov.shape[cov.rank() - 1], mean.shape.back()) &&
              decide_equal(cov.shape[cov.rank() - 2], mean.shape.back());
  if (!fits)
    fail("{}: a mean [..., n] and a covariance [..., n, n] are needed: {} and {}", op, mean, cov);
  Shape of_mean(mean.shape.begin(), mean.shape.end() - 1);
  Shape of_cov(cov.shape.begin(), cov.shape.end() - 2);
  Shape shape = a.shape ? *a.shape : broadcast(of_mean, of_cov, op);
  shape.push_back(mean.shape.back());
  check_draw(op, {shape, a.dtype}, in[0]);
  Tensor z = draw_normal(in[0], shape, a.dtype);
  Tensor factor = tn::cholesky(cast_to(in[2], a.dtype));
  Tensor spread = tn::squeeze(tn::matmul(factor, tn::expand_dims(z, Axes(-1))), Axes(-1));
  return parameter(op, "mean", in[1], shape, a.dtype) + spread;
}

Tensor laplace_body(const DrawAttrs& a, const Tensors& in) {
  check_draw("random_laplace", a, in[0]);
  Tensor u = draw_symmetric(in[0], a.shape, a.dtype);
  return placed("random_laplace", a, tn::sign(u) * tn::log1p(-tn::abs(u)), in[1], in[2]);
}

Tensor exponential_body(const DrawAttrs& a, const Tensors& in) {
  check_draw("random_exponential", a, in[0]);
  Tensor scale = parameter("random_exponential", "scale", in[1], a.shape, a.dtype);
  Tensor x = -tn::log1p(-draw_unit(in[0], a.shape, a.dtype));
  return is_number(scale, 1) ? x : x * scale;
}

}  // namespace

constexpr auto random_uniform_def = Composite<DrawAttrs>{
    .doc =
        "Uniform numbers from `low` on and below `high`, which broadcast to `shape`. (Rounding may "
        "give `high` itself.) Derivatives exist in both.",
    .args = {"key", "low", "high"},
    .body = [](const DrawAttrs& a, const Tensors& in) -> Tensors { return {uniform_body(a, in)}; },
    .precision = Precision::full,
    .samples = {{"u32[2], f32[], f32[]", "shape=[2,3]"},
                {"u32[2], f32[3], f32[2,1]", "shape=[2,3], dtype=f64"}},
};
TN_OP(random_uniform);

constexpr auto random_normal_def = Composite<DrawAttrs>{
    .doc =
        "Normal numbers of mean `loc` and standard deviation `scale`, which broadcast to `shape`. "
        "The real and the imaginary part of complex ones have half the variance each.",
    .args = {"key", "loc", "scale"},
    .body = [](const DrawAttrs& a, const Tensors& in) -> Tensors { return {normal_body(a, in)}; },
    .precision = Precision::full,
    .samples = {{"u32[2], f32[], f32[]", "shape=[2,3]"},
                {"u32[2], f32[3], f32[2,1]", "shape=[2,3], dtype=f64"}},
};
TN_OP(random_normal);

constexpr auto random_truncated_normal_def = Composite<FittedAttrs>{
    .doc =
        "Standard normal numbers given that they lie between `lower` and `upper`, which broadcast "
        "to `shape`, by default to each other; never the bounds themselves.",
    .args = {"key", "lower", "upper"},
    .body = [](const FittedAttrs& a, const Tensors& in) -> Tensors {
      return {truncated_normal_body(a, in)};
    },
    .precision = Precision::full,
    .samples = {{"u32[2], f32[], f32[3]", "shape=[2,3]"}, {"u32[2], f32[2,1], f32[3]"}},
};
TN_OP(random_truncated_normal);

constexpr auto random_multivariate_normal_def = Composite<FittedAttrs>{
    .doc =
        "Normal vectors of mean `mean` [..., n] and covariance `cov` [..., n, n], which is "
        "positive "
        "definite; `shape` is that of the leading axes, by default those of both. NaN where `cov` "
        "is not positive definite.",
    .args = {"key", "mean", "cov"},
    .body = [](const FittedAttrs& a, const Tensors& in) -> Tensors {
      return {multivariate_normal_body(a, in)};
    },
    .precision = Precision::full,
    .samples = {{"u32[2], f32[2,1], f32[1,1]", "", 0.5, 2},
                {"u32[2], f32[1], f32[1,1]", "shape=[3]", 0.5, 2}},
};
TN_OP(random_multivariate_normal);

constexpr auto random_gumbel_def = Composite<DrawAttrs>{
    .doc = "Numbers of the standard Gumbel distribution: -log(-log(u)) of uniform ones.",
    .args = {"key"},
    .body = [](const DrawAttrs& a, const Tensors& in) -> Tensors {
      check_draw("random_gumbel", a, in[0]);
      return {draw_gumbel(in[0], a.shape, a.dtype)};
    },
    .precision = Precision::full,
    .samples = {{"u32[2]", "shape=[2,3]", 0, 100}},
};
TN_OP(random_gumbel);

constexpr auto random_laplace_def = Composite<DrawAttrs>{
    .doc =
        "Numbers of the Laplace distribution around `loc`, of mean distance `scale`; both "
        "broadcast to `shape`.",
    .args = {"key", "loc", "scale"},
    .body = [](const DrawAttrs& a, const Tensors& in) -> Tensors { return {laplace_body(a, in)}; },
    .precision = Precision::full,
    .samples = {{"u32[2], f32[], f32[3]", "shape=[2,3]"}},
};
TN_OP(random_laplace);

constexpr auto random_exponential_def = Composite<DrawAttrs>{
    .doc = "Numbers of the exponential distribution of mean `scale`, which broadcasts to `shape`.",
    .args = {"key", "scale"},
    .body = [](const DrawAttrs& a, const Tensors& in) -> Tensors {
      return {exponential_body(a, in)};
    },
    .precision = Precision::full,
    .samples = {{"u32[2], f32[3]", "shape=[2,3]"}},
};
TN_OP(random_exponential);

}  // namespace tn::ops
