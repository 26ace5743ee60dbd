// Counting elements by value: histograms, bins and integers.
#include "base/error.h"
#include "ir/sizes.h"
#include "ops/draws.h"
#include "ops/families.h"
#include "ops/known_values.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

struct HistogramAttrs {
  bool density = false;
  static constexpr void fields(auto& a, auto&& f) { f("density", a.density); }
};

struct BincountAttrs {
  int64_t minlength = 0;
  Maybe<int64_t> length;
  static constexpr void fields(auto& a, auto&& f) {
    f("minlength", a.minlength), f("length", a.length);
  }
};

struct DigitizeAttrs {
  bool right = false;
  static constexpr void fields(auto& a, auto&& f) { f("right", a.right); }
};

/// How often each number below `count` is among `places`, or the sum of the weights there. Other
/// numbers are left out.
Tensor counted(const Tensor& places, const Tensor& weights, Dim count) {
  Tensor each = weights.defined() ? weights : filled(1, DType::i64, places.shape());
  return tn::scatter(filled(0, each.dtype(), {count}), each, {places}, Axes(0), "add", 0, "drop");
}

/// Fails where `bins` are known not to be in ascending order, NaN last.
void check_ascending(std::string_view op, const Tensor& bins) {
  Dim n = bins.shape()[0];
  Tensor next = slice_axis(bins, 0, 1, n);
  Tensor holds = slice_axis(bins, 0, 0, n - 1) <= next;
  if (is_inexact(bins.dtype())) holds = holds | tn::isnan(next);
  if (is_known_false(holds))
    fail(Hint{"sort them"}, "{}: the bin edges are not monotonic: {}", op, *type_of(bins));
}

double number_in(const Tensor& x) { return cast_to(x, DType::f64).item<double>(); }

/// The least and the largest value that is counted; half a step around a single value.
std::pair<Tensor, Tensor> counted_range(const Tensor& x, const Tensor& range) {
  Tensor low, high;
  if (range.defined()) {
    if (range.rank() != 1 || !decide_equal(range.shape()[0], 2))
      fail("histogram: range is two numbers: {}", *type_of(range));
    Tensor ends = cast_to(range, x.dtype());
    low = tn::take(ends, 0, Axis(0)), high = tn::take(ends, 1, Axis(0));
  } else if (x.shape().elements().is(0)) {
    low = make_scalar(0.0, x.dtype(), false), high = make_scalar(1.0, x.dtype(), false);
  } else {
    low = tn::min(x), high = tn::max(x);
  }
  if (is_known_false(tn::isfinite(low) & tn::isfinite(high)))
    fail("histogram: the range is not finite: {} to {} ({})", number_in(low), number_in(high),
         *type_of(range.defined() ? range : x));
  if (range.defined() && is_known_false(low <= high))
    fail("histogram: the range ends before it begins: {} to {}", number_in(low), number_in(high));
  Tensor single = low == high;
  return {tn::where(single, low - 0.5, low), tn::where(single, high + 0.5, high)};
}

/// The borders of the bins, in the type of `x`.
Tensor bin_edges(const Tensor& x, const Tensor& bins, const Tensor& range) {
  if (bins.defined() && bins.rank() == 1) {
    if (!decide_at_least(bins.shape()[0], 2))
      fail("histogram: at least two bin edges are needed: {}", *type_of(bins));
    check_ascending("histogram", bins);
    return cast_to(bins, x.dtype());
  }
  int64_t count = 10;
  if (bins.defined()) {
    auto number = known_number(bins);
    if (!number || !number->is_integral())
      fail(Fault::type, Hint{"give an integer, or the edges of the bins"},
           "histogram: bins must be known: {}", *type_of(bins));
    count = number->integer;
  }
  if (count < 1) fail("histogram: at least one bin is needed: {}", count);
  auto [low, high] = counted_range(x, range);
  Tensor i = tn::iota({count + 1}, 0, x.dtype());
  Tensor line = low + i * ((high - low) / static_cast<double>(count));
  return tn::where(i == static_cast<double>(count), high, line);
}

/// Bins hold their left edges, the last one its right edge too.
Tensors histogram_body(const HistogramAttrs& a, const Tensors& in) {
  check_kind("histogram", ordered, in[0].dtype());
  DType type = to_inexact(in[0].dtype());
  // Integers are compared with exact edges.
  DType work = is_inexact(in[0].dtype()) ? info(type).compute : DType::f64;
  Tensor x = cast_to(tn::reshape(in[0], {Dim(-1)}), work), weights = optional(in, 3);
  if (weights.defined()) {
    if (!decide_equal(weights.shape(), in[0].shape()))
      fail("histogram: weights and x have different shapes: {} and {}", *type_of(weights),
           *type_of(in[0]));
    weights = tn::reshape(weights, {Dim(-1)});
  }
  Tensor edges = bin_edges(x, optional(in, 1), optional(in, 2));
  Dim count = edges.shape()[0] - 1;
  Tensor last = slice_axis(edges, 0, count, count + 1);
  Tensor place = tn::searchsorted(edges, x, nullptr, "right") - 1;
  place = tn::where(x == last, count - 1, place);
  Tensor counts = counted(place, weights, count);
  if (a.density) {
    Tensor real = cast_to(counts, to_inexact(counts.dtype()));
    counts = real / tn::sum(real) / cast_to(tn::diff(edges), real.dtype());
  }
  return {counts, cast_to(edges, type)};
}

Dim bincount_length(const BincountAttrs& a, const Tensor& x) {
  if (a.length) {
    if (*a.length < 0) fail("bincount: a negative length: {}", *a.length);
    return *a.length;
  }
  if (a.minlength < 0) fail("bincount: a negative minlength: {}", a.minlength);
  if (x.shape().elements().is(0)) return a.minlength;
  values_now("bincount", x, Hint{"give `length`, the number of results"});
  auto [least, most] = *known_ends(x);
  if (least < 0) fail("bincount: a negative number: {} ({})", least, *type_of(x));
  return std::max(a.minlength, most + 1);
}

Tensors bincount_body(const BincountAttrs& a, const Tensors& in) {
  const Tensor &x = in[0], weights = optional(in, 1);
  check_kind("bincount", booleans | integers, x.dtype());
  if (x.rank() != 1) fail("bincount: x has one axis: {}", *type_of(x));
  if (weights.defined() && !decide_equal(weights.shape(), x.shape()))
    fail("bincount: weights and x have different shapes: {} and {}", *type_of(weights),
         *type_of(x));
  if (weights.defined()) check_kind("bincount", ordered, weights.dtype());
  Tensor real = weights.defined() ? cast_to(weights, to_inexact(weights.dtype())) : weights;
  return {counted(cast_to(x, DType::i64), real, bincount_length(a, x))};
}

/// Descending edges are searched from the end.
Tensors digitize_body(const DigitizeAttrs& a, const Tensors& in) {
  Tensors both{in[1], in[0]};
  promote_all(both, "digitize", reals);
  const Tensor &bins = both[0], &x = both[1];
  if (bins.rank() != 1) fail("digitize: bins have one axis: {}", *type_of(in[1]));
  Dim n = bins.shape()[0];
  if (decide_equal(n, 0)) return {filled(0, DType::i64, x.shape())};
  Tensor descending = tn::take(bins, 0, Axis(0)) > tn::take(bins, -1, Axis(0));
  Tensor ascending = tn::where(descending, tn::flip(bins), bins);
  check_ascending("digitize", ascending);
  Tensor place = tn::searchsorted(ascending, x, nullptr, a.right ? "left" : "right");
  return {tn::where(descending, n - place, place)};
}

}  // namespace

constexpr auto count_in_bins_def = Composite<HistogramAttrs>{
    .doc =
        "How many elements of `x` lie in each bin, and the edges of the bins. `bins` is their "
        "number (10 by default), between the ends of `range` or the extremes of `x`, or the edges "
        "in ascending order, and `range` has no say. A bin holds its left edge, the last one both. "
        "`weights` are added up in place of ones; with `density` the integral over the bins is 1.",
    .args = {"x", "?bins", "?range", "?weights"},
    .results = {"counts", "bin_edges"},
    .body = rule<histogram_body>,
    .samples = {{"f32[20]"}, {"f32[12]", "density=true"}},
};
TN_OP(count_in_bins);

constexpr auto bincount_def = Composite<BincountAttrs>{
    .doc =
        "How often each integer from 0 on occurs in `x`, or the sum of its `weights`. There are "
        "`minlength` results at least, up to the largest integer: the size depends on the values, "
        "so they are computed now, unless `length` is given; then larger integers are left out.",
    .args = {"x", "?weights"},
    .body = rule<bincount_body>,
    .samples = {{"i64[7]", "length=4", 0, 5}, {"i32[6], f32[6]", "length=8", 0, 5}},
};
TN_OP(bincount);

constexpr auto digitize_def = Composite<DigitizeAttrs>{
    .doc =
        "The number of the bin each element of `x` lies in, as int64: `bins[i-1] <= x < bins[i]`, "
        "or `bins[i-1] < x <= bins[i]` when `right`. Where `bins` descend, the signs are turned.",
    .args = {"x", "bins"},
    .body = rule<digitize_body>,
    .samples = {{"f32[2,3], f32[1]"}, {"f32[4], f32[1]", "right=true"}},
};
TN_OP(digitize);

}  // namespace tn::ops
