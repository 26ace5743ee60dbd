// Running sums, products and extremes along one axis, and differences of neighbours.
#include "ops/cumulative.h"

#include <limits>

#include "base/error.h"
#include "ir/sizes.h"
#include "ops/families.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

constexpr loop::Monoid kMonoids[] = {loop::Monoid::add, loop::Monoid::mul, loop::Monoid::max,
                                     loop::Monoid::min};

struct RunningSumAttrs {
  Maybe<Axis> axis;
  Maybe<DType> dtype;
  bool include_initial = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("axis", a.axis), f("dtype", a.dtype), f("include_initial", a.include_initial);
  }
};

struct RunningAttrs {
  Maybe<Axis> axis;
  static constexpr void fields(auto& a, auto&& f) { f("axis", a.axis); }
};

struct DiffAttrs {
  Axis axis = -1;
  int64_t n = 1;
  static constexpr void fields(auto& a, auto&& f) { f("axis", a.axis), f("n", a.n); }
};

void prepare_cumulative(CumulativeAttrs& a, Tensors& in) {
  a.axis = normal_axis(a.axis, in[0].rank(), "cumulative");
}

Type infer_cumulative(const CumulativeAttrs& a, Types in) {
  check_kind("cumulative", a.mode == Running::sum ? numeric : reals, in[0]->dtype);
  return *in[0];
}

/// The axis that is scanned is the innermost loop.
void lower_cumulative(const CumulativeAttrs& a, loop::Lowering& l) {
  Shape rest = without_axes(l.in[0]->shape, Axes(a.axis.i));
  loop::Coords at = l.loops(rest);
  int axis = rest.rank();
  at.insert(at.begin() + a.axis.i, l.loops({l.in[0]->shape[a.axis.i]}, loop::AxisKind::scan)[0]);
  auto scan = [&](S x) {
    return l.b.scan(kMonoids[static_cast<int>(a.mode)], x, axis, a.reverse, a.exclusive);
  };
  if (!is_complex(l.in[0]->dtype)) return l.store_real(0, at, scan(l.load_real(0, at)));
  loop::Element x = l.load(0, at);
  l.store(0, at, {scan(x.re), scan(x.im)});
}

/// `x` and its axis; flattened when no axis is given.
int settle_axis(std::string_view op, const Maybe<Axis>& axis, Tensor& x) {
  if (!axis) x = tn::reshape(x, {Dim(-1)});
  return axis ? normal_axis(*axis, x.rank(), op) : 0;
}

/// `x` moved by some places along `axis`; `first` comes in at the front.
Tensor delay(const Tensor& x, int axis, int64_t places, const Scalar& first) {
  Tensor front = filled(first, x.dtype(), with_extent(x.shape(), axis, places));
  return tn::concat({front, slice_axis(x, axis, 0, x.shape()[axis] - places)}, Axis(axis));
}

/// For operations without a scan: in step k each element takes in the result 2^k places before it.
Tensor scan_by_doubling(Tensor x, int axis, const Scalar& neutral,
                        Tensor (*combine)(const Tensor& earlier, const Tensor& later)) {
  for (int64_t reach = 1; !decide_at_least(reach, x.shape()[axis]); reach *= 2)
    x = combine(delay(x, axis, reach, neutral), x);
  return x;
}

Tensor run_along(const Tensor& x, int axis, Running mode) {
  if (mode == Running::prod && is_complex(x.dtype()))
    return scan_by_doubling(x, axis, 1, [](const Tensor& a, const Tensor& b) { return a * b; });
  return emit(cumulative, {x}, CumulativeAttrs{axis, mode});
}

/// The tangent of running products, as products of dual numbers x + t·eps.
Tensor tangent_of_products(Tensor x, Tensor t, int axis) {
  for (int64_t reach = 1; !decide_at_least(reach, x.shape()[axis]); reach *= 2) {
    Tensor before = delay(x, axis, reach, 1);
    t = before * t + delay(t, axis, reach, 0) * x;
    x = before * x;
  }
  return t;
}

/// The tangent of running extremes: that of the last element so far that equals the extreme.
Tensor tangent_of_extremes(const Tensor& x, const Tensor& t, int axis, Running mode) {
  Tensor is_extreme = tn::equal(x, run_along(x, axis, mode));
  Tensor place = tn::where(is_extreme, tn::iota(x.shape(), axis), 0);
  return tn::take_along_axis(t, run_along(place, axis, Running::max), axis);
}

Tensors jvp_cumulative(const CumulativeAttrs& a, const Primal& p, const Tensors& given) {
  if (a.mode == Running::sum) return {emit(cumulative, {given[0]}, a)};
  DType type = p.in[0].dtype(), wide = info(type).compute;
  int axis = a.axis.i;
  Tensor x = cast_to(p.in[0], wide), t = cast_to(given[0], wide);
  if (x.shape()[axis].is(0)) return {given[0]};
  if (a.reverse) x = tn::flip(x, Axes(axis)), t = tn::flip(t, Axes(axis));
  t = a.mode == Running::prod ? tangent_of_products(x, t, axis)
                              : tangent_of_extremes(x, t, axis, a.mode);
  if (a.exclusive) t = delay(t, axis, 1, 0);
  if (a.reverse) t = tn::flip(t, Axes(axis));
  return {cast_to(t, type)};
}

/// A sum of what came before is, backwards, a sum of what comes after.
Tensors vjp_cumulative(const CumulativeAttrs& a, const Primal&, const Tensors& cts) {
  if (a.mode != Running::sum) return {};
  CumulativeAttrs back = a;
  back.reverse = !a.reverse;
  return {emit(cumulative, {cts[0]}, back)};
}

Tensors run_sum(std::string_view op, const RunningSumAttrs& a, const Tensors& in, Running mode) {
  Tensor x = in[0];
  check_kind(op, every_type, x.dtype());
  DType type = is_inexact(x.dtype()) ? x.dtype() : info(x.dtype()).accumulate;
  type = a.dtype.value_or(type);
  check_kind(op, numeric, type);
  int axis = settle_axis(op, a.axis, x);
  Tensor result = run_along(cast_to(x, type), axis, mode);
  if (!a.include_initial) return {result};
  Scalar initial = mode == Running::sum ? 0 : 1;
  Tensor first = filled(initial, type, with_extent(x.shape(), axis, 1));
  return {tn::concat({first, result}, Axis(axis))};
}

Tensors run_extreme(std::string_view op, const RunningAttrs& a, const Tensors& in, Running mode) {
  Tensor x = in[0];
  check_kind(op, reals, x.dtype());
  int axis = settle_axis(op, a.axis, x);
  return {run_along(x, axis, mode)};
}

Tensors run_logsumexp(const RunningAttrs& a, const Tensors& in) {
  Tensor x = in[0];
  check_kind("logcumsumexp", reals, x.dtype());
  int axis = settle_axis("logcumsumexp", a.axis, x);
  DType type = to_inexact(x.dtype());
  x = cast_to(x, info(type).compute);
  Scalar nothing = -std::numeric_limits<double>::infinity();
  x = scan_by_doubling(x, axis, nothing,
                       [](const Tensor& p, const Tensor& q) { return tn::logaddexp(p, q); });
  return {cast_to(x, type)};
}

Tensors subtract_neighbours(const DiffAttrs& a, const Tensors& in) {
  Tensor x = in[0];
  int axis = normal_axis(a.axis, x.rank(), "diff");
  if (a.n < 0) fail("diff: n must not be negative: {} ({})", a.n, *type_of(x));
  if (a.n == 0) return {x};
  Tensors parts;
  for (size_t i : {size_t{1}, size_t{0}, size_t{2}}) {
    if (i >= in.size() || !in[i].defined()) continue;
    bool one = in[i].rank() == 0;  // a number stands for one element everywhere
    parts.push_back(one ? tn::broadcast_to(in[i], with_extent(x.shape(), axis, 1)) : in[i]);
  }
  if (parts.size() > 1) x = tn::concat(parts, Axis(axis));
  Dim extent = x.shape()[axis];
  if (extent.is_const() && a.n >= extent.value()) return {slice_axis(x, axis, 0, 0)};
  constexpr int64_t kMostTimes = 10'000;  // each is an op; f64 overflows before 1,100
  if (a.n > kMostTimes) fail("diff: n must be at most {}: {} ({})", kMostTimes, a.n, *type_of(x));
  for (int64_t k = 0; k < a.n; ++k) {
    Dim n = x.shape()[axis];
    Tensor later = slice_axis(x, axis, 1, n), earlier = slice_axis(x, axis, 0, n.is(0) ? n : n - 1);
    x = x.dtype() == DType::b1 ? tn::not_equal(later, earlier) : later - earlier;
  }
  return {x};
}

}  // namespace

Tensor products_of_others(const Tensor& x, int axis) {
  if (!is_complex(x.dtype()))
    return emit(cumulative, {x}, CumulativeAttrs{axis, Running::prod, false, true}) *
           emit(cumulative, {x}, CumulativeAttrs{axis, Running::prod, true, true});
  if (x.shape()[axis].is(0)) return x;
  auto before = [&](const Tensor& y) {
    return run_along(delay(y, axis, 1, 1), axis, Running::prod);
  };
  return before(x) * tn::flip(before(tn::flip(x, Axes(axis))), Axes(axis));
}

constexpr auto cumulative_def = Op<CumulativeAttrs>{
    .doc =
        "Running sum, product, largest or smallest element along `axis`, from the end with "
        "`reverse`, "
        "without the element itself with `exclusive`. NaN stays once it is met.",
    .args = {"x"},
    .prepare = rule<prepare_cumulative>,
    .infer = rule<infer_cumulative>,
    .lower = rule<lower_cumulative>,
    .jvp = rule<jvp_cumulative>,
    .vjp = rule<vjp_cumulative>,
    .batch = Batch::aligned,
    .samples = {{"f32[5]", "axis=0"},
                {"f32[2,3]", "axis=0, mode=prod, reverse=true"},
                {"f32[2,3]", "axis=1, exclusive=true"},
                {"f32[2,3]", "axis=1, mode=prod, exclusive=true"},
                {"f32[2,5]", "axis=1, mode=max"},
                {"f32[2,3]", "axis=0, mode=min, reverse=true"}},
};
TN_OP(cumulative);

constexpr auto cumulative_sum_def = Composite<RunningSumAttrs>{
    .doc =
        "Sum of the elements up to each one along `axis`; of the flattened tensor when it is left "
        "out. "
        "`include_initial` puts a 0 in front. Element types are those of `sum`.",
    .aliases = {"cumsum"},
    .args = {"x"},
    .body = [](const RunningSumAttrs& a,
               const Tensors& in) { return run_sum("cumulative_sum", a, in, Running::sum); },
    .precision = Precision::full,
    .samples = {{"f32[5]"},
                {"f32[2,3]", "axis=-2"},
                {"f32[2,3]", "axis=1, include_initial=true"},
                {"f32[4]", "dtype=c128"}},
};
TN_OP(cumulative_sum);

constexpr auto cumulative_prod_def = Composite<RunningSumAttrs>{
    .doc =
        "Product of the elements up to each one along `axis`; of the flattened tensor when it is "
        "left "
        "out. `include_initial` puts a 1 in front. Element types are those of `prod`.",
    .aliases = {"cumprod"},
    .args = {"x"},
    .body = [](const RunningSumAttrs& a,
               const Tensors& in) { return run_sum("cumulative_prod", a, in, Running::prod); },
    .precision = Precision::full,
    .samples = {{"f32[5]"}, {"f32[2,3]", "axis=-2"}, {"f32[2,3]", "axis=1, include_initial=true"}},
};
TN_OP(cumulative_prod);

constexpr auto cummax_def = Composite<RunningAttrs>{
    .doc =
        "Largest element up to each one along `axis`; of the flattened tensor when it is left out. "
        "NaN "
        "from the first NaN on.",
    .args = {"x"},
    .body = [](const RunningAttrs& a,
               const Tensors& in) { return run_extreme("cummax", a, in, Running::max); },
    .samples = {{"f32[5]"}, {"f32[2,3]", "axis=-1"}, {"f32[2,3]", "axis=0"}},
};
TN_OP(cummax);

constexpr auto cummin_def = Composite<RunningAttrs>{
    .doc =
        "Smallest element up to each one along `axis`; of the flattened tensor when it is left "
        "out. "
        "NaN from the first NaN on.",
    .args = {"x"},
    .body = [](const RunningAttrs& a,
               const Tensors& in) { return run_extreme("cummin", a, in, Running::min); },
    .samples = {{"f32[5]"}, {"f32[2,3]", "axis=-1"}, {"f32[2,3]", "axis=0"}},
};
TN_OP(cummin);

constexpr auto logcumsumexp_def = Composite<RunningAttrs>{
    .doc =
        "Logarithm of the running sum of exponentials along `axis`; of the flattened tensor when "
        "it is "
        "left out. It does not overflow where the result fits. Integers become float32.",
    .args = {"x"},
    .body = rule<run_logsumexp>,
    .precision = Precision::full,
    .samples = {{"f32[5]"}, {"f32[2,3]", "axis=-1"}, {"f32[2,3]", "axis=0", -100, 100}},
};
TN_OP(logcumsumexp);

constexpr auto diff_def = Composite<DiffAttrs>{
    .doc =
        "Differences of neighbours along `axis`, taken `n` times, after joining `prepend` and "
        "`append` "
        "to it. Bool gives whether they differ; unsigned integers wrap.",
    .args = {"x", "?prepend", "?append"},
    .body = rule<subtract_neighbours>,
    .samples = {{"f32[5]"},
                {"f32[2,5]", "axis=0"},
                {"f32[2,5]", "n=2"},
                {"f32[2,3], f32[2,1], f32[2,2]"}},
};
TN_OP(diff);

}  // namespace tn::ops
