// Means, variances and quantiles. Integers become float32; float16 and bfloat16 are computed in
// float32.
#include <algorithm>

#include "base/error.h"
#include "ir/sizes.h"
#include "ops/families.h"
#include "ops/known_values.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

struct VarAttrs {
  Maybe<Axes> axis;
  double correction = 0;
  bool keepdims = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("axis", a.axis), f("correction", a.correction), f("keepdims", a.keepdims);
  }
};

struct UnbiasedAttrs {
  Maybe<Axes> dim;
  Maybe<bool> unbiased;
  bool keepdim = false;
  double correction = 1;
  static constexpr void fields(auto& a, auto&& f) {
    f("dim", a.dim), f("unbiased", a.unbiased), f("keepdim", a.keepdim);
    f("correction", a.correction);
  }
  double taken_away() const { return unbiased ? static_cast<double>(*unbiased) : correction; }
};

/// Where a quantile lies between two elements, or which of them it is.
enum class Method : uint8_t { linear, lower, higher, midpoint, nearest };
constexpr std::string_view kMethods[] = {"linear", "lower", "higher", "midpoint", "nearest"};
constexpr ChoiceNames choice_names(Method) { return kMethods; }

struct QuantileAttrs {
  Maybe<Axes> axis;
  bool keepdims = false;
  Method method = Method::linear;
  static constexpr void fields(auto& a, auto&& f) {
    f("axis", a.axis), f("keepdims", a.keepdims), f("method", a.method);
  }
};

/// `x` in the type it computes in, and the type of the result.
struct Wide {
  Tensor x;
  DType result;
  Axes axes;
  Dim count;
};

Wide widen(std::string_view op, const Tensor& x, const Maybe<Axes>& axis, KindSet accepted) {
  check_kind(op, accepted, x.dtype());
  DType type = to_inexact(x.dtype());
  Axes axes = normal_axes(axis, x.rank(), op);
  return {cast_to(x, info(type).compute), type, axes, extent_of(x.shape(), axes)};
}

Tensor mean_of(const Wide& w, bool keepdims) {
  return over_count(tn::sum(w.x, w.axes, {}, keepdims), w.count);
}

/// Two passes: the squares are of differences from the mean, so nothing cancels.
Tensor variance_of(const Wide& w, double correction, bool keepdims) {
  Tensor apart = w.x - mean_of(w, true);
  Tensor squares = is_complex(apart.dtype()) ? tn::real(apart * tn::conj(apart)) : apart * apart;
  Tensor total = tn::sum(squares, w.axes, {}, keepdims);
  if (w.count.is_const())
    return total / std::max(static_cast<double>(w.count.raw) - correction, 0.0);
  Tensor left = tn::maximum(value_of(w.count, DType::f64) - correction, 0.0);
  return total / cast_to(left, total.dtype());
}

/// `value`, or NaN where the line holds one: sorting puts it last.
Tensor spread_nan(const Tensor& lines, const Tensor& value, const Shape& shape) {
  int axis = lines.rank() - 1;
  Dim n = lines.shape()[axis];
  Tensor last = tn::reshape(slice_axis(lines, axis, n - 1, n), shape);
  return tn::where(tn::isnan(last), last, value);
}

Tensors middle(const ReduceAttrs& a, const Tensors& in) {
  Wide w = widen("median", in[0], a.axis, ordered);
  Dim n = w.count;
  if (n.is(0)) return {cast_to(mean_of(w, a.keepdims), w.result)};  // NaN
  Tensor lines = tn::sort(lines_along(w.x, w.axes), -1);
  int axis = lines.rank() - 1;
  Shape shape = without_axes(lines.shape(), Axes(axis));
  auto at = [&](Dim i) { return tn::reshape(slice_axis(lines, axis, i, i + 1), shape); };
  Dim half = floor_div(n, 2);
  Tensor value = decide_divides(2, n) ? (at(half - 1) + at(half)) * 0.5 : at(half);
  value = spread_nan(lines, value, shape);
  return {cast_to(tn::reshape(value, without_axes(w.x.shape(), w.axes, a.keepdims)), w.result)};
}

void check_share(std::string_view op, const Tensor& q, double whole) {
  if (!is_float(q.dtype()) && !is_integer(q.dtype()))
    fail(Fault::type, "{}: q must be real: {}", op, *type_of(q));
  check_values(op, format("q must lie in [0, {}]", whole), q, (q >= 0) & (q <= whole));
}

Tensor moved_by(Method method, const Tensor& place) {
  if (method == Method::lower) return tn::floor(place);
  if (method == Method::higher) return tn::ceil(place);
  if (method == Method::nearest) return tn::round(place);
  return method == Method::midpoint ? (tn::floor(place) + tn::ceil(place)) * 0.5 : place;
}

/// Between the two neighbours of the place q*(n-1), in proportion; q counts up to `whole`.
Tensors quantiles(std::string_view op, const QuantileAttrs& a, const Tensors& in, double whole) {
  Wide w = widen(op, in[0], a.axis, reals);
  check_share(op, in[1], whole);
  if (w.count.is(0)) fail("{}: no elements: {}", op, *type_of(in[0]));
  Tensor lines = tn::sort(lines_along(w.x, w.axes), -1);
  int axis = lines.rank() - 1;
  Tensor given = cast_to(in[1], DType::f64) / whole;
  Tensor place = tn::minimum(tn::maximum(given, 0.0), 1.0) * (w.count - 1);
  place = moved_by(a.method, place);
  Tensor below = tn::floor(place);
  Tensor share = cast_to(place - below, w.x.dtype()), first = cast_to(below, DType::i64);
  Tensor low = tn::gather(lines, {first}, Axes(axis));
  Tensor high = tn::gather(lines, {first + 1}, Axes(axis), 0, "clamp");  // q = 1 has no next one
  Tensor value = tn::lerp(low, high, share);
  Shape line = lines.shape();
  line.erase(axis);
  for (int k = 0; k < in[1].rank(); ++k) line.push_back(1);
  value = spread_nan(lines, value, line);
  Perm perm;  // the axes of q come first
  for (int k = axis; k < value.rank(); ++k) perm.push_back(k);
  for (int k = 0; k < axis; ++k) perm.push_back(k);
  Shape shape = in[1].shape();
  for (Dim d : without_axes(w.x.shape(), w.axes, a.keepdims)) shape.push_back(d);
  return {cast_to(tn::reshape(tn::permute_dims(value, perm), shape), w.result)};
}

}  // namespace

constexpr auto mean_def = Composite<ReduceAttrs>{
    .doc = "Arithmetic mean over `axis`, over all axes when it is left out. NaN of no elements.",
    .args = {"x"},
    .body = [](const ReduceAttrs& a, const Tensors& in) -> Tensors {
      Wide w = widen("mean", in[0], a.axis, every_type);
      return {cast_to(mean_of(w, a.keepdims), w.result)};
    },
    .precision = Precision::full,
    .samples = {{"f32[2,3]"}, {"f32[2,3,4]", "axis=[0,-1], keepdims=true"}, {"f32[5]", "axis=[0]"}},
};
TN_OP(mean);

constexpr auto var_def = Composite<VarAttrs>{
    .doc =
        "Variance over `axis`: the sum of squared distances from the mean, divided by the number "
        "of "
        "elements less `correction`. NaN when nothing is left to divide by.",
    .args = {"x"},
    .body = [](const VarAttrs& a, const Tensors& in) -> Tensors {
      Wide w = widen("var", in[0], a.axis, every_type);
      return {cast_to(variance_of(w, a.correction, a.keepdims), real_of(w.result))};
    },
    .precision = Precision::full,
    .samples = {{"f32[2,3]"},
                {"f32[2,3,4]", "axis=[0,-1], correction=1.0, keepdims=true"},
                {"f32[5]", "axis=[0], correction=1.5"}},
};
TN_OP(var);

constexpr auto std_def = Composite<VarAttrs>{
    .doc = "Standard deviation over `axis`: the square root of `var`.",
    .args = {"x"},
    .body = [](const VarAttrs& a, const Tensors& in) -> Tensors {
      Wide w = widen("std", in[0], a.axis, every_type);
      return {cast_to(tn::sqrt(variance_of(w, a.correction, a.keepdims)), real_of(w.result))};
    },
    .precision = Precision::full,
    .samples = {{"f32[2,3]"}, {"f32[2,3,4]", "axis=[0,-1], correction=1.0, keepdims=true"}},
};
TN_OP(std);

/// PyTorch's `var` and `std`, of a sample by default.
constexpr auto var_unbiased_def = Composite<UnbiasedAttrs>{
    .doc = "`var` with a correction of 1.",
    .aliases = {"torch.var"},
    .args = {"x"},
    .surface = false,
    .body = [](const UnbiasedAttrs& a, const Tensors& in) -> Tensors {
      return {tn::var(in[0], a.dim, a.taken_away(), a.keepdim)};
    },
};
TN_OP(var_unbiased);

constexpr auto std_unbiased_def = Composite<UnbiasedAttrs>{
    .doc = "`std` with a correction of 1.",
    .aliases = {"torch.std"},
    .args = {"x"},
    .surface = false,
    .body = [](const UnbiasedAttrs& a, const Tensors& in) -> Tensors {
      return {tn::std(in[0], a.dim, a.taken_away(), a.keepdim)};
    },
};
TN_OP(std_unbiased);

constexpr auto median_def = Composite<ReduceAttrs>{
    .doc =
        "The middle element over `axis` in sorted order, the mean of the two middle ones for an "
        "even number. NaN if any element is NaN, or where there are none.",
    .args = {"x"},
    .body = rule<middle>,
    .samples = {{"f32[5]"}, {"f32[2,4]", "axis=[-1]"}, {"f32[2,3,4]", "axis=[0,1], keepdims=true"}},
};
TN_OP(median);

constexpr auto quantile_def = Composite<QuantileAttrs>{
    .doc =
        "The element below which a share `q` of the elements over `axis` lies. Between two "
        "elements `method` takes a point in proportion (`linear`), one of them (`lower`, "
        "`higher`, `nearest`) or the middle (`midpoint`). The axes of `q` come first in the "
        "result. A `q` outside of [0, 1] is an error; traced functions, which do not know it, "
        "clamp it. NaN if any element is NaN; no elements are an error.",
    .args = {"x", "q"},
    .body = [](const QuantileAttrs& a,
               const Tensors& in) { return quantiles("quantile", a, in, 1); },
    .samples = {{"f32[5], f32[]", "", 0, 1},
                {"f32[2,4], f32[3]", "axis=[-1]", 0, 1},
                {"f32[2,3,4], f32[2]", "axis=[0,1], keepdims=true", 0, 1},
                {"f32[7], f32[3]", "method=lower", 0, 1}},
};
TN_OP(quantile);

constexpr auto percentile_def = Composite<QuantileAttrs>{
    .doc = "`quantile` of shares in percent: `q` lies in [0, 100].",
    .args = {"x", "q"},
    .body = [](const QuantileAttrs& a,
               const Tensors& in) { return quantiles("percentile", a, in, 100); },
    .samples = {{"f32[5], f32[]", "", 0, 100},
                {"f32[2,4], f32[3]", "axis=[-1]", 0, 100},
                {"f32[7], f32[2]", "method=higher", 0, 100}},
};
TN_OP(percentile);

}  // namespace tn::ops
