// Functions given by samples, and polynomials given by coefficients.
#include <cmath>

#include "base/error.h"
#include "ir/sizes.h"
#include "ops/families.h"
#include "ops/matrices.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/flat.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

struct InterpAttrs {
  Maybe<double> period;
  static constexpr void fields(auto& a, auto&& f) { f("period", a.period); }
};

struct GradientAttrs {
  Axis axis;
  int64_t edge_order = 1;
  static constexpr void fields(auto& a, auto&& f) {
    f("axis", a.axis), f("edge_order", a.edge_order);
  }
};

struct TrapezoidAttrs {
  double dx = 1;
  Axis axis = -1;
  static constexpr void fields(auto& a, auto&& f) { f("dx", a.dx), f("axis", a.axis); }
};

struct PolyfitAttrs {
  int64_t deg = 0;
  Maybe<double> rcond;
  static constexpr void fields(auto& a, auto&& f) {
    f("deg", a.deg, required), f("rcond", a.rcond);
  }
};

/// Sample points and values of a function, ascending.
struct Samples {
  Tensor at, values;
  Dim count() const { return at.shape()[0]; }
};

/// One period, with the neighbours of its ends.
Samples periodic(const Samples& given, double period) {
  Tensor at = tn::remainder(given.at, period), order = tn::argsort(at);
  Tensor values = tn::take(given.values, order, Axis(0));
  at = tn::take(at, order, Axis(0));
  Dim n = given.count();
  auto first = [](T x) { return slice_axis(x, 0, 0, 1); };
  auto last = [&](T x) { return slice_axis(x, 0, n - 1, n); };
  return {tn::concat({last(at) - period, at, first(at) + period}, 0),
          tn::concat({last(values), values, first(values)}, 0)};
}

/// How far `x` is on the way from `left` to `right`, whose distance may be too large for a number.
/// Nothing is on the way from or to infinity.
Tensor share_of_way(const Tensor& x, const Tensor& left, const Tensor& right) {
  Tensor scale = tn::where(tn::isfinite(right - left), 1.0, 0.5);
  Tensor from = left * scale, width = right * scale - from, none = width == 0;
  Tensor share = tn::where(none, 1.0, (x * scale - from) / tn::where(none, 1.0, width));
  return tn::where(tn::isinf(left), x > left, tn::where(tn::isinf(right), x == right, share));
}

/// On the straight line between the neighbours of `x`.
Tensor between(const Tensor& x, const Samples& s) {
  Dim n = s.count();
  Tensor y = tn::broadcast_to(slice_axis(s.values, 0, 0, 1), x.shape());
  if (!decide_equal(n, 1)) {
    Tensor i = tn::clip(tn::searchsorted(s.at, x, nullptr, "right"), 1, n - 1);
    auto of = [&](T list, T places) { return tn::gather(list, {places}, Axes(0)); };
    Tensor share = share_of_way(x, of(s.at, i - 1), of(s.at, i));
    y = tn::lerp(of(s.values, i - 1), of(s.values, i), share);
  }
  return tn::where(tn::isnan(x), x, y);
}

Tensors interp_body(const InterpAttrs& a, const Tensors& in) {
  Tensors points{in[0], in[1]}, values{in[2]};
  promote_all(points, "interp", reals, true);
  promote_all(values, "interp", every_type, true);
  if (in[1].rank() != 1 || in[2].rank() != 1 || !decide_equal(in[1].shape(), in[2].shape()))
    fail("interp: xp and fp are lists of one length: {} and {}", *type_of(in[1]), *type_of(in[2]));
  if (in[1].shape()[0].is(0)) fail("interp: there are no sample points: {}", *type_of(in[1]));
  DType type = promote(points[0].dtype(), values[0].dtype()), wide = info(type).compute;
  Tensor x = cast_to(points[0], real_of(wide));
  Samples s{cast_to(points[1], real_of(wide)), cast_to(values[0], wide)};
  if (a.period) {
    if (*a.period == 0) fail("interp: the period is 0");
    double period = std::abs(*a.period);
    return {cast_to(between(tn::remainder(x, period), periodic(s, period)), type)};
  }
  Tensor y = between(x, s), first = tn::take(s.at, 0, Axis(0)), last = tn::take(s.at, -1, Axis(0));
  Tensor left = optional(in, 3), right = optional(in, 4);
  left = left.defined() ? cast_to(left, wide) : tn::take(s.values, 0, Axis(0));
  right = right.defined() ? cast_to(right, wide) : tn::take(s.values, -1, Axis(0));
  return {cast_to(tn::where(x < first, left, tn::where(x > last, right, y)), type)};
}

/// Differences along one axis of `x`, whose elements lie `spacing` apart, or at its elements.
struct Differences {
  const Tensor& x;
  int axis;
  Tensor spacing;
  Dim n;

  Tensor at(Offset start, Offset stop) const { return slice_axis(x, axis, start, stop); }
  Tensor one(Dim i) const { return at(i, i + 1); }

  /// The distances between neighbours from `start` to `stop`, along the axis.
  Tensor gaps(Dim start, Dim stop) const {
    if (spacing.rank() == 0) return spacing;
    Tensor d = tn::diff(spacing);
    Shape along = with_extent(Shape::filled(x.rank(), 1), axis, stop - start);
    return tn::reshape(slice_axis(d, 0, start, stop), along);
  }
  Tensor interior() const {
    if (spacing.rank() == 0) return (at(2, n) - at(0, n - 2)) / (spacing * 2);
    Tensor before = gaps(0, n - 2), after = gaps(1, n - 1), both = before + after;
    return at(0, n - 2) * (-after / (before * both)) +
           at(1, n - 1) * ((after - before) / (before * after)) +
           at(2, n) * (before / (after * both));
  }
  /// At the first element, or at the last one, seen from the end.
  Tensor end(bool last, int64_t order) const {
    auto place = [&](Dim i) { return one(last ? n - 1 - i : i); };
    auto gap = [&](Dim i) { return last ? gaps(n - 2 - i, n - 1 - i) : gaps(i, i + 1); };
    Tensor near = gap(0), slope = (place(1) - place(0)) / near;
    if (order == 2) {
      Tensor far = gap(1), both = near + far;
      slope = place(0) * (-(near * 2 + far) / (near * both)) + place(1) * (both / (near * far)) -
              place(2) * (near / (far * both));
    }
    return last ? -slope : slope;
  }
};

/// A distance, or the coordinates of the elements along `axis`.
Tensor checked_spacing(const Tensor& spacing, const Tensor& x, int axis) {
  if (!spacing.defined()) return make_scalar(1.0, real_of(x.dtype()), false);
  if (spacing.rank() > 1) fail("gradient: a spacing has at most one axis: {}", *type_of(spacing));
  if (spacing.rank() == 1 && !decide_equal(spacing.shape()[0], x.shape()[axis]))
    fail("gradient: coordinates do not fit axis {}: {} and {}", axis, *type_of(spacing),
         *type_of(x));
  return cast_to(spacing, real_of(x.dtype()));
}

Tensors gradient_body(const GradientAttrs& a, const Tensors& in) {
  check_kind("gradient", every_type, in[0].dtype());
  if (a.edge_order != 1 && a.edge_order != 2)
    fail("gradient: edge_order is 1 or 2, not {}", a.edge_order);
  DType type = to_inexact(in[0].dtype());
  Tensor x = cast_to(in[0], info(type).compute);
  int axis = normal_axis(a.axis, x.rank(), "gradient");
  Dim n = x.shape()[axis];
  if (!decide_at_least(n, a.edge_order + 1))
    fail("gradient: {} elements are needed along axis {}: {}", a.edge_order + 1, axis, *type_of(x));
  Differences d{x, axis, checked_spacing(optional(in, 1), x, axis), n};
  Tensors parts{d.end(false, a.edge_order)};
  if (decide_at_least(n, 3)) parts.push_back(d.interior());
  parts.push_back(d.end(true, a.edge_order));
  return {cast_to(tn::concat(parts, Axis(axis)), type)};
}

Tensors trapezoid_body(const TrapezoidAttrs& a, const Tensors& in) {
  Tensors both = in;
  if (!optional(both, 1).defined()) both.resize(1);
  DType type = promote_all(both, "trapezoid", every_type, true);
  Tensor y = cast_to(both[0], info(type).compute);
  int axis = normal_axis(a.axis, y.rank(), "trapezoid");
  Dim n = y.shape()[axis];
  if (n.is(0)) return {cast_to(tn::sum(y, Axes(axis)), type)};
  Tensor middle = (slice_axis(y, axis, 1, n) + slice_axis(y, axis, 0, n - 1)) * 0.5;
  if (both.size() < 2) return {cast_to(tn::sum(middle, Axes(axis)) * a.dx, type)};
  Tensor x = cast_to(both[1], y.dtype()), width;
  if (x.rank() == 1) {
    Shape along = with_extent(Shape::filled(y.rank(), 1), axis, x.shape()[0] - 1);
    width = tn::reshape(tn::diff(x), along);
  } else {
    width = tn::diff(x, nullptr, nullptr, axis - y.rank());
  }
  return {cast_to(tn::sum(middle * width, Axes(axis)), type)};
}

/// Horner's rule; a loop where there are many coefficients.
Tensors polyval_body(const NoAttrs&, const Tensors& in) {
  constexpr int64_t kUnrolled = 32;
  Tensors both = in;
  promote_all(both, "polyval", numeric);
  const Tensor &p = both[0], &x = both[1];
  if (p.rank() != 1) fail("polyval: coefficients have one axis: {}", *type_of(p));
  Tensor y = filled(0, x.dtype(), x.shape());
  if (!p.shape()[0].is_const() || p.shape()[0].raw > kUnrolled)
    return flat::scan(
               [&](const Tensors& carry, const Tensors& c) -> flat::ScanResult {
                 return {{carry[0] * x + c[0]}, {}};
               },
               {y}, {p})
        .carry;
  for (int64_t k = 0; k < p.shape()[0].raw; ++k)
    y = y * x + tn::reshape(slice_axis(p, 0, k, k + 1), {});
  return {y};
}

/// Least squares with the powers of x, scaled to one norm, as columns.
Tensors polyfit_body(const PolyfitAttrs& a, const Tensors& in) {
  Tensors all{in[0], in[1]};
  Tensor weights = optional(in, 2);
  if (weights.defined()) all.push_back(weights);
  promote_matrices("polyfit", all);
  const Tensor& x = all[0];
  Tensor y = all[1];
  bool fits = x.rank() == 1 && (y.rank() == 1 || y.rank() == 2);
  if (!fits || !decide_equal(x.shape()[0], y.shape()[0]))
    fail("polyfit: x and y have one length: {} and {}", *type_of(in[0]), *type_of(in[1]));
  if (x.shape()[0].is(0)) fail("polyfit: there are no points: {}", *type_of(in[0]));
  constexpr int64_t kMost = 1 << 16;
  if (a.deg < 0 || a.deg > kMost) fail("polyfit: deg must lie in [0, {}]: {}", kMost, a.deg);
  Dim n = x.shape()[0];
  Tensor wide = tn::broadcast_to(as_column(x), {n, a.deg});
  Tensor powers = tn::flip(tn::cumulative_prod(wide, Axis(1), {}, true), Axes(1));
  bool vector = y.rank() == 1;
  if (vector) y = as_column(y);
  if (weights.defined()) {
    if (!decide_equal(all[2].shape(), x.shape()))
      fail("polyfit: w and x have different shapes: {} and {}", *type_of(in[2]), *type_of(in[0]));
    powers = powers * as_column(all[2]), y = y * as_column(all[2]);
  }
  Tensor scale = tn::sqrt(tn::sum(tn::real(powers * tn::conj(powers)), Axes(0), {}, true));
  scale = tn::where(scale == 0, 1, scale);
  Tensor c = tn::matmul(tn::pinv(powers / scale, a.rcond), y) / tn::matrix_transpose(scale);
  return {vector ? tn::squeeze(c, Axes(1)) : c};
}

}  // namespace

constexpr auto interp_def = Composite<InterpAttrs>{
    .doc =
        "The function with the values `fp` at the ascending points `xp`, straight in between, at "
        "`x`. Before the first point it is `left`, behind the last `right`; by default the values "
        "there. With `period` points need not ascend, and the function repeats.",
    .args = {"x", "xp", "fp", "?left", "?right"},
    .body = rule<interp_body>,
    .samples = {{"f32[2,3], f32[1], f32[1]"}, {"f32[5], f32[4], f32[4]", "period=3.0"}},
};
TN_OP(interp);

constexpr auto slopes_def = Composite<GradientAttrs>{
    .doc =
        "The slopes of `x` along `axis`, from central differences inside and one-sided ones of "
        "`edge_order` 1 or 2 at the ends. `spacing` is the distance of neighbours, 1 by default, "
        "or the coordinates of the elements.",
    .args = {"x", "?spacing"},
    .body = rule<gradient_body>,
    .samples = {{"f32[5]"}, {"f32[3,4], f32[]", "axis=-1", 1, 2}, {"f32[4,3]", "edge_order=2"}},
};
TN_OP(slopes);

constexpr auto trapezoid_def = Composite<TrapezoidAttrs>{
    .doc =
        "The integral of `y` along `axis` by the trapezoidal rule, over the points `x`, or points "
        "`dx` apart.",
    .aliases = {"trapz"},
    .args = {"y", "?x"},
    .body = rule<trapezoid_body>,
    .precision = Precision::full,
    .samples = {{"f32[5]", "dx=0.5"}, {"f32[3,4], f32[3]", "axis=0"}, {"f32[2,3], f32[2,3]"}},
};
TN_OP(trapezoid);

constexpr auto polyval_def = Composite<>{
    .doc = "The polynomial with the coefficients `p`, highest power first, at `x`.",
    .args = {"p", "x"},
    .body = rule<polyval_body>,
    .samples = {{"f32[3], f32[2,3]"}, {"f32[1], f32[]"}, {"f32[40], f32[3]", "", -1, 1}},
};
TN_OP(polyval);

constexpr auto fit_polynomial_def = Composite<PolyfitAttrs>{
    .doc =
        "The coefficients, highest power first, of the polynomial of degree `deg` nearest to `y` "
        "at `x`, in the sum of squares, which weights `w` multiply before squaring. `y` may have "
        "several columns. Singular values not above `rcond` times the largest count as 0; see "
        "`pinv`.",
    .args = {"x", "y", "?w"},
    .body = rule<polyfit_body>,
    .precision = Precision::full,
    .samples = {{"f32[6], f32[6]", "deg=2"}, {"f32[7], f32[7,2], f32[7]", "deg=1"}},
};
TN_OP(fit_polynomial);

}  // namespace tn::ops
