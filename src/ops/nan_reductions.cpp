// Reductions that leave NaN out. Integers have none, so theirs are the plain ones.
#include <limits>

#include "base/error.h"
#include "ops/families.h"
#include "ops/op_attrs.h"
#include "ops/op_decls.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

struct NanVarAttrs {
  Maybe<Axes> axis;
  double correction = 0;
  bool keepdims = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("axis", a.axis), f("correction", a.correction), f("keepdims", a.keepdims);
  }
};

/// `x` with `other` in place of NaN.
Tensor without_nan(const Tensor& x, const Scalar& other) {
  if (!is_inexact(x.dtype())) return x;
  return tn::where(tn::isnan(x), make_scalar(other, x.dtype(), false), x);
}

Tensors extreme(std::string_view op, const ReduceAttrs& a, const Tensor& x, bool largest) {
  check_kind(op, ordered, x.dtype());
  auto reduce = [&](const Tensor& of) {
    return largest ? tn::max(of, a.axis, a.keepdims) : tn::min(of, a.axis, a.keepdims);
  };
  if (!is_inexact(x.dtype())) return {reduce(x)};
  constexpr double kInf = std::numeric_limits<double>::infinity();
  Tensor value = reduce(without_nan(x, largest ? -kInf : kInf));
  Tensor none = tn::all(tn::isnan(x), a.axis, a.keepdims);
  return {tn::where(none, std::numeric_limits<double>::quiet_NaN(), value)};
}

/// Sum and number of what is not NaN.
struct Counted {
  Tensor x, sum, count;
  Counted(const Tensor& wide, const Maybe<Axes>& axis, bool keepdims) : x(wide) {
    sum = tn::sum(without_nan(x, 0.0), axis, {}, keepdims);
    Tensor present = tn::astype(tn::logical_not(tn::isnan(x)), real_of(x.dtype()));
    count = tn::sum(present, axis, {}, keepdims);
  }
  Tensor mean() const { return sum / count; }
};

/// In the type that sums are computed in.
Tensor widened(std::string_view op, const Tensor& x) {
  check_kind(op, every_type, x.dtype());
  return cast_to(x, info(to_inexact(x.dtype())).compute);
}

Tensor variance(std::string_view op, const NanVarAttrs& a, const Tensor& given) {
  Tensor x = widened(op, given);
  Tensor apart = x - Counted(x, a.axis, true).mean();
  if (is_inexact(x.dtype())) apart = tn::where(tn::isnan(x), 0.0, apart);  // inf - inf stays NaN
  Tensor squares = is_complex(x.dtype()) ? tn::real(apart * tn::conj(apart)) : apart * apart;
  Tensor free = Counted(x, a.axis, a.keepdims).count - a.correction;
  Tensor value = tn::sum(squares, a.axis, {}, a.keepdims) / free;
  return tn::where(free <= 0, std::numeric_limits<double>::quiet_NaN(), value);
}

DType variance_type(const Tensor& x) { return real_of(to_inexact(x.dtype())); }

}  // namespace

constexpr auto nansum_def = Composite<SumAttrs>{
    .doc = "`sum` with NaN as 0.",
    .args = {"x"},
    .body = [](const SumAttrs& a, const Tensors& in) -> Tensors {
      return {tn::sum(without_nan(in[0], 0.0), a.axis, a.dtype, a.keepdims)};
    },
    .precision = Precision::full,
    .samples = {{"f32[2,3]"},
                {"f32[2,3,4]", "axis=[0,-1], keepdims=true"},
                {"f32[4]", "dtype=f64"}},
};
TN_OP(nansum);

constexpr auto nanprod_def = Composite<SumAttrs>{
    .doc = "`prod` with NaN as 1.",
    .args = {"x"},
    .body = [](const SumAttrs& a, const Tensors& in) -> Tensors {
      return {tn::prod(without_nan(in[0], 1.0), a.axis, a.dtype, a.keepdims)};
    },
    .precision = Precision::full,
    .samples = {{"f32[2,3]"}, {"f32[2,3]", "axis=[0], keepdims=true"}},
};
TN_OP(nanprod);

constexpr auto nanmax_def = Composite<ReduceAttrs>{
    .doc = "The largest element over `axis` that is not NaN; NaN where all are.",
    .args = {"x"},
    .body = [](const ReduceAttrs& a,
               const Tensors& in) { return extreme("nanmax", a, in[0], true); },
    .samples = {{"f32[2,3]"}, {"f32[2,3,4]", "axis=[0,-1], keepdims=true"}},
};
TN_OP(nanmax);

constexpr auto nanmin_def = Composite<ReduceAttrs>{
    .doc = "The smallest element over `axis` that is not NaN; NaN where all are.",
    .args = {"x"},
    .body = [](const ReduceAttrs& a,
               const Tensors& in) { return extreme("nanmin", a, in[0], false); },
    .samples = {{"f32[2,3]"}, {"f32[2,3,4]", "axis=[0,-1], keepdims=true"}},
};
TN_OP(nanmin);

constexpr auto nanmean_def = Composite<ReduceAttrs>{
    .doc = "The mean over `axis` of the elements that are not NaN; NaN where all are.",
    .args = {"x"},
    .body = [](const ReduceAttrs& a, const Tensors& in) -> Tensors {
      Counted found(widened("nanmean", in[0]), a.axis, a.keepdims);
      return {cast_to(found.mean(), to_inexact(in[0].dtype()))};
    },
    .precision = Precision::full,
    .samples = {{"f32[2,3]"}, {"f32[2,3,4]", "axis=[0,-1], keepdims=true"}, {"f32[5]", "axis=[0]"}},
};
TN_OP(nanmean);

constexpr auto nanvar_def = Composite<NanVarAttrs>{
    .doc =
        "`var` over `axis` of the elements that are not NaN. NaN where `correction` leaves none to "
        "divide by.",
    .args = {"x"},
    .body = [](const NanVarAttrs& a, const Tensors& in) -> Tensors {
      return {cast_to(variance("nanvar", a, in[0]), variance_type(in[0]))};
    },
    .precision = Precision::full,
    .samples = {{"f32[2,3]"}, {"f32[2,3,4]", "axis=[0,-1], correction=1.0, keepdims=true"}},
};
TN_OP(nanvar);

constexpr auto nanstd_def = Composite<NanVarAttrs>{
    .doc = "The square root of `nanvar`.",
    .args = {"x"},
    .body = [](const NanVarAttrs& a, const Tensors& in) -> Tensors {
      return {cast_to(tn::sqrt(variance("nanstd", a, in[0])), variance_type(in[0]))};
    },
    .precision = Precision::full,
    .samples = {{"f32[2,3]"}, {"f32[2,3,4]", "axis=[0,-1], correction=1.0, keepdims=true"}},
};
TN_OP(nanstd);

}  // namespace tn::ops
