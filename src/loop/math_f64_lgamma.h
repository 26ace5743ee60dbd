#pragma once
// log|gamma(x)|, evaluated in f64 for both widths.

#include "loop/math_f64_trig.h"

namespace tn::TN_LEVEL::math::f64 {

// y in (0, inf). Below 3 the function is a factor t = y - 1 or y - 2 times a polynomial, because it
// vanishes there; below 0.75 first lgamma(y) = lgamma(y + 1) - log(y).
template <class V>
[[gnu::always_inline]] inline V lgamma_positive(V y) {
  const V zero = constant<V>(0);
  const V one = constant<V>(1);
  const auto below = y < constant<V>(0.75);
  const V step = select(below, zero, one);
  const V from_one = y - step;
  const V from_two = from_one - one;
  const auto near_one = from_one < constant<V>(0.5);
  const V t = select(near_one, from_one, from_two);
  const Pair<V> ln = log_pair(y, zero);

  const V u = select(t < constant<V>(1), t, zero);
  const V shape = select(near_one, horner(u, kLgammaOne), horner(u, kLgammaTwo));
  const V near = fma(u, shape, select(below, -ln.hi, zero));
  const V middle =
      horner(select(y < constant<V>(8), y, constant<V>(8)) - constant<V>(5.5), kLgammaMiddle);

  // (y - 1/2) (log y - 1) + (log(2 pi) - 1) / 2 + tail
  const V inverse = one / select(y > constant<V>(8), y, constant<V>(8));
  const V tail = inverse * horner(inverse * inverse, kStirling);
  const Pair<V> slope = add(ln, pair_constant<V>(-1, 0));
  const V factor = y - constant<V>(0.5);
  const V product = factor * slope.hi;
  const V low = fma(factor, slope.lo, fma(factor, slope.hi, -product));
  const Pair<V> sum = two_sum(product, constant<V>(0x1.acfe390c97d69p-2));
  const V finite = sum.hi + (sum.lo + (low + tail));
  const V far = select(product < constant<V>(kInf), finite, constant<V>(kInf));

  const V upper = select(y < constant<V>(8), middle, far);
  return select(y < constant<V>(3), near, upper);
}

// Below zero: lgamma(x) = log(pi / (y |sin(pi y)|)) - lgamma(y) with y = -x.
template <class V>
[[gnu::always_inline]] inline V lgamma(V x) {
  const V zero = constant<V>(0);
  const V y = abs(x);
  const auto regular = both(y > zero, y < constant<V>(kInf));
  const V a = select(regular, y, constant<V>(1));
  const V value = lgamma_positive(a);
  const V fraction = abs(a - round_even(a));
  const auto steep = fraction > constant<V>(0.25);
  const V angle = select(steep, constant<V>(0.5) - fraction, fraction);
  const V radians = angle * constant<V>(0x1.921fb54442d18p+1);
  const Pair<V> r = {radians, zero};
  const Pair<V> s = select(steep, cos_kernel(r), sin_kernel(r));
  const V sine = s.hi + s.lo;
  const auto pole = either(fraction == zero, !regular);
  const V logs = log_positive(select(pole, constant<V>(1), sine)) + log_positive(a);
  const V reflected = (constant<V>(0x1.250d048e7a1bdp+0) - logs) - value;
  const V negative = select(pole, constant<V>(kInf), reflected);
  const V positive = select(regular, value, constant<V>(kInf));
  return select(is_nan(x), x, select(x < zero, negative, positive));
}

}  // namespace tn::TN_LEVEL::math::f64
