#pragma once
// The hot f32 functions, in f32 arithmetic alone: exp, exp2, log, tanh, erf, erfc,
// sigmoid.

#include "loop/math_f64_log.h"

namespace tn::TN_LEVEL::math::f32 {

using f64::clamp;

// exp(r + c) for |r| <= ln(2) / 2 and a correction c.
template <class V>
[[gnu::always_inline]] inline V exp_reduced(V r, V c) {
  const V q = horner(r, kExpF32);
  return constant<V>(1) + (r + fma(r * r, q, c));
}

template <class V>
struct ExpArgument {
  V n, r;
};

template <class V>
[[gnu::always_inline]] inline ExpArgument<V> reduce_exp(V x) {
  const V n = round_even(x * constant<V>(0x1.715476p+0f));
  const V r = fma(-n, constant<V>(0x1.62e4p-1f), x);
  return {n, fma(-n, constant<V>(0x1.7f7d1cp-20f), r)};
}

// exp for results that are normal numbers.
template <class V>
[[gnu::always_inline]] inline V exp_normal(V x) {
  const ExpArgument<V> a = reduce_exp(x);
  return exp_reduced(a.r, constant<V>(0)) * exp2_int(a.n);
}

// 2^n y in two factors: subnormal results are rounded once.
template <class V>
[[gnu::always_inline]] inline V scale(V y, V n) {
  using I = IntOf<V>;
  const I k = to_int(n);
  const I half = k >> 1;
  const V first = from_bits<V>((half + constant<I>(127)) << 23);
  return y * first * from_bits<V>((k - half + constant<I>(127)) << 23);
}

// Masked softmax makes exp(-inf) common: lanes that vanish are kept away from the subnormals, where
// multiplication is slow.
template <class V>
[[gnu::always_inline]] inline V exp(V x) {
  const auto vanishes = x < constant<V>(-103.98f);
  const V top = select(x < constant<V>(104), x, constant<V>(104));
  const ExpArgument<V> a = reduce_exp(select(vanishes, constant<V>(0), top));
  const V value = scale(exp_reduced(a.r, constant<V>(0)), a.n);
  return select(is_nan(x), x, select(vanishes, constant<V>(0), value));
}

template <class V>
[[gnu::always_inline]] inline V exp2(V x) {
  const V y = clamp(x, -152, 130);
  const V n = round_even(y);
  const V f = y - n;
  const V ln2 = constant<V>(0x1.62e43p-1f);
  const V r = f * ln2;
  const V c = fma(f, constant<V>(-0x1.05c61p-29f), fma(f, ln2, -r));
  return select(is_nan(x), x, scale(exp_reduced(r, c), n));
}

// log(1 + f) = f - f^2 / 2 + f^3 P(f) on [sqrt(1/2) - 1, sqrt(2) - 1].
template <class V>
[[gnu::always_inline]] inline V log(V x) {
  using I = IntOf<V>;
  constexpr int32_t kRootHalf = 0x3f3504f3;
  const V valid = f64::log_argument(x);
  const auto subnormal = valid < constant<V>(0x1p-126f);
  const V y = select(subnormal, valid * constant<V>(0x1p23f), valid);
  const I b = bits(y) + constant<I>(0x3f800000 - kRootHalf);
  const I bias = select(subnormal, constant<I>(127 + 23), constant<I>(127));
  const V e = to_float(shift_right(b, 23) - bias);
  const V f = from_bits<V>((b & constant<I>(0x007fffff)) + constant<I>(kRootHalf)) - constant<V>(1);
  const V square = f * f;
  const V half = constant<V>(0.5f) * square;
  const V low = fma(square * f, horner(f, kLogF32), e * constant<V>(0x1.0bfbe8p-15f));
  const Pair<V> sum = fast_two_sum(e * constant<V>(0x1.62ep-1f), f);
  return f64::log_domain(x, sum.hi + (sum.lo - (half - low)));
}

template <class V>
[[gnu::always_inline]] inline V tanh(V x) {
  const V one = constant<V>(1);
  const V y = clamp(abs(x), 0, 10);
  const V large = one - constant<V>(2) / (exp_normal(y + y) + one);
  const V z = x * x;
  const V small = fma(x * z, horner(z, kTanhF32), x);
  const V value = select(abs(x) < constant<V>(0.65f), small, large);
  return select(is_nan(x), x, copy_sign(value, x));
}

template <class V>
[[gnu::always_inline]] inline V erf(V x) {
  const V y = clamp(abs(x), 0, 4);
  const V large = constant<V>(1) - exp_normal(horner(y, kErfTailF32) - y);
  const V small = fma(x, horner(x * x, kErfF32), x);
  const V value = select(abs(x) < constant<V>(0.93f), small, large);
  return select(is_nan(x), x, copy_sign(value, x));
}

// erfc(y) = exp(-y^2) g for y = |x|, g = r P(r), r = 1 / (y + 3); where x < 0 it is 2 less that.
// What the square, the reciprocal and the last two steps of g lose is put back at the end: `late`
// relative to the result, `g_low` to g.
template <class V>
[[gnu::always_inline]] inline V erfc(V x) {
  using I = IntOf<V>;
  const V y = select(abs(x) < constant<V>(10.1f), abs(x), constant<V>(10.1f));
  const V square = y * y;
  const V d = y + constant<V>(3);
  const V r = constant<V>(1) / d;
  const V lost = fma(-(y - (d - constant<V>(3))), r, fma(-d, r, constant<V>(1)));
  const V s = r - constant<V>(0x1.5b9d56p-3f);
  const V slope = fma(constant<V>(8.1f), s, constant<V>(2));  // d log g / d log r, about
  const V late = fma(slope, lost, -fma(y, y, -square));

  const V upper = horner_tail(s, kErfcxF32);
  const V p = fma(upper, s, constant<V>(kErfcxF32[0]));
  const V g = r * p;
  const V g_low = fma(r, fma(upper, s, constant<V>(kErfcxF32[0]) - p), fma(r, p, -g));

  const ExpArgument<V> a = reduce_exp(-square);
  const V q = horner(a.r, kExpF32);
  const V z = a.r * a.r;
  const V w = fma(z, q, fma(late, fma(z, q, a.r), late));  // exp(a.r + late) - 1 - a.r
  // -147 <= n <= 0: 2^(n + 64) is a normal number, and subnormal results are rounded once.
  const V power = from_bits<V>((to_int(a.n) + constant<I>(127 + 64)) << 23);
  const V tail = (g + fma(g, a.r, fma(g, w, g_low))) * power * constant<V>(0x1p-64f);
  const V value = select(x < constant<V>(0), constant<V>(2) - tail, tail);
  return select(is_nan(x), x, value);
}

// The exponential is summed with one more word here: two more roundings follow.
template <class V>
[[gnu::always_inline]] inline V sigmoid(V x) {
  const ExpArgument<V> a = reduce_exp(clamp(-abs(x), -105, 0));
  const Pair<V> sum = fast_two_sum(constant<V>(1), a.r);
  const V e = scale(sum.hi + fma(a.r * a.r, horner(a.r, kExpF32), sum.lo), a.n);
  return f64::logistic(x, e);
}

}  // namespace tn::TN_LEVEL::math::f32
