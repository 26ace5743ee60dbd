#pragma once
// Exponentials and hyperbolic functions in f64.

#include "loop/math_coefficients.h"
#include "loop/math_double_double.h"

namespace tn::TN_LEVEL::math::f64 {

// exp = 2^n (1 + r + t), n integral, |r| <= ln(2) / 2, |t| small against 1.
template <class V>
struct ExpParts {
  V n, r, t;
};

template <class V>
[[gnu::always_inline]] inline ExpParts<V> exp_parts(V n, V r, V c) {
  const V q = horner(r, kExp);
  return {n, r, fma(r * r, q, fma(c, r, c))};
}

// Parts of exp(x + lo) for |x| < 2^11; n ln(2) is taken off in two steps, the first exact.
template <class V>
[[gnu::always_inline]] inline ExpParts<V> exp_parts(V x, V lo) {
  const V n = round_even(x * constant<V>(0x1.71547652b82fep+0));
  const V high = fma(-n, constant<V>(0x1.62e42fefa38p-1), x);
  const V r = fma(-n, constant<V>(0x1.ef35793c7673p-45), high);
  const V c = fma(-n, constant<V>(0x1.ef35793c7673p-45), high - r) + lo;
  const Pair<V> sum = two_sum(r, c);
  return exp_parts(n, sum.hi, sum.lo);
}

// 2^n y in two factors, so that overflow and subnormal results come from one rounding.
template <class V>
[[gnu::always_inline]] inline V scale(V y, V n) {
  const V half = floor(n * constant<V>(0.5));
  return y * exp2_int(half) * exp2_int(n - half);
}

template <class V>
[[gnu::always_inline]] inline V exp_value(ExpParts<V> e) {
  const Pair<V> sum = fast_two_sum(constant<V>(1), e.r);
  return scale(sum.hi + (sum.lo + e.t), e.n);
}

// x forced into [low, high]; NaN becomes high.
template <class V>
[[gnu::always_inline]] inline V clamp(V x, double low, double high) {
  const V top = select(x < constant<V>(high), x, constant<V>(high));
  return select(top > constant<V>(low), top, constant<V>(low));
}

// Lanes that vanish are kept away from the subnormals, where multiplication is slow.
template <class V>
[[gnu::always_inline]] inline V exp(V x) {
  const V zero = constant<V>(0);
  const auto vanishes = x < constant<V>(-745.14);
  const V top = select(x < constant<V>(710), x, constant<V>(710));
  const V value = exp_value(exp_parts(select(vanishes, zero, top), zero));
  return select(is_nan(x), x, select(vanishes, zero, value));
}

template <class V>
[[gnu::always_inline]] inline V exp2(V x) {
  const V y = clamp(x, -1076, 1025);
  const V n = round_even(y);
  const V f = y - n;
  const V r = f * constant<V>(0x1.62e42fefa39efp-1);
  const V c =
      fma(f, constant<V>(0x1.abc9e3b39803fp-56), fma(f, constant<V>(0x1.62e42fefa39efp-1), -r));
  return select(is_nan(x), x, exp_value(exp_parts(n, r, c)));
}

// 2^(n-1) expm1 as a pair: the halved scale keeps n = 1024 finite.
template <class V>
[[gnu::always_inline]] inline Pair<V> half_expm1(V x) {
  const ExpParts<V> e = exp_parts(x, constant<V>(0));
  const V s = exp2_int(e.n - constant<V>(1));
  const Pair<V> sum = two_sum(s - constant<V>(0.5), s * e.r);
  return fast_two_sum(sum.hi, fma(s, e.t, sum.lo));
}

template <class V>
[[gnu::always_inline]] inline V expm1(V x) {
  const Pair<V> half = half_expm1(clamp(x, -40, 710));
  const V value = half.hi + half.hi;
  const auto tiny = abs(x) < constant<V>(0x1p-54);
  return select(either(tiny, is_nan(x)), x, value);
}

// exp(|x|) / 4 and exp(-|x|) / 4 for |x| clamped to 710.5, past where cosh overflows.
template <class V>
struct ExpBoth {
  Pair<V> up, down;
};

template <class V>
[[gnu::always_inline]] inline ExpBoth<V> exp_both(V x) {
  const ExpParts<V> e = exp_parts(clamp(abs(x), 0, 710.5), constant<V>(0));
  const Pair<V> sum = fast_two_sum(constant<V>(1), e.r);
  const Pair<V> p = fast_two_sum(sum.hi, sum.lo + e.t);
  const V q = constant<V>(1) / p.hi;
  const V q_low = q * (fma(-q, p.hi, constant<V>(1)) - q * p.lo);
  const V s = exp2_int(e.n - constant<V>(2));
  const V down_n = constant<V>(-2) - e.n;
  const V t = exp2_int(select(down_n > constant<V>(-1000), down_n, constant<V>(-1000)));
  return {{p.hi * s, p.lo * s}, {q * t, q_low * t}};
}

template <class V>
[[gnu::always_inline]] inline V sinh(V x) {
  const ExpBoth<V> e = exp_both(x);
  const Pair<V> d = add(e.up, {-e.down.hi, -e.down.lo});
  const V large = copy_sign(d.hi + d.hi, x);
  const V z = x * x;
  const V small = fma(x * z, horner(z, kSinh), x);
  const V value = select(abs(x) < constant<V>(1), small, large);
  return select(either(abs(x) < constant<V>(0x1p-30), is_nan(x)), x, value);
}

template <class V>
[[gnu::always_inline]] inline V cosh(V x) {
  const ExpBoth<V> e = exp_both(x);
  const V value = add(e.up, e.down).hi;
  return select(is_nan(x), x, value + value);
}

// tanh = t / (t + 2) with t = expm1(2|x|) as a pair.
template <class V>
[[gnu::always_inline]] inline V tanh(V x) {
  const V y = clamp(abs(x), 0, 24);
  const Pair<V> t = half_expm1(y + y);
  const V value = copy_sign(divide(t, add(pair_constant<V>(1, 0), t)).hi, x);
  return select(either(abs(x) < constant<V>(0x1p-30), is_nan(x)), x, value);
}

// e / (1 + e) or 1 / (1 + e) by the sign of x, e = exp(-|x|); the remainder of the division pays
// for the roundings of the sum and of the quotient. The factor `inverse` is about 1 / (1 + e).
template <class V>
[[gnu::always_inline]] inline V logistic(V x, V e) {
  const auto negative = x < constant<V>(0);
  const Pair<V> den = fast_two_sum(constant<V>(1), e);
  const V num = select(negative, e, constant<V>(1));
  const V q = num / den.hi;
  const V rest = fma(-q, den.lo, fma(-q, den.hi, num));
  const V inverse = select(negative, constant<V>(1) - q, q);
  return select(is_nan(x), x, fma(rest, inverse, q));
}

template <class V>
[[gnu::always_inline]] inline V sigmoid(V x) {
  return logistic(x, exp(-abs(x)));
}

}  // namespace tn::TN_LEVEL::math::f64
