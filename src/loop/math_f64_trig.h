#pragma once
// Trigonometric functions in f64, and their argument reduction, which f32 shares.

#include "loop/math_f64_log.h"

namespace tn::TN_LEVEL::math::f64 {

// Above this |x| the three-word reduction by pi/2 is no longer exact enough.
inline constexpr double kHugeAngle = 1.6e6;

// x = quadrant * pi/2 + r, modulo whole turns.
template <class V>
struct Angle {
  V quadrant;
  Pair<V> r;
};

template <class V>
[[gnu::always_inline]] inline Angle<V> reduce_angle(V x) {
  const V n = round_even(x * constant<V>(0x1.45f306dc9c883p-1));
  const V t = fma(-n, constant<V>(0x1.921fb544p+0), x);
  const Pair<V> p = two_product(n, constant<V>(0x1.0b4611a626331p-34));
  const Pair<V> s = two_sum(t, -p.hi);
  const V low = fma(-n, constant<V>(0x1.1701b839a252p-88), s.lo - p.lo);
  return {n, fast_two_sum(s.hi, low)};
}

template <class V>
[[gnu::always_inline]] inline V modulo_four(V x) {
  return fma(constant<V>(-4), round_even(x * constant<V>(0.25)), x);
}

// Error-free partial sums from the smallest term up: terms[0] becomes the rounded total.
template <class V, int n>
[[gnu::always_inline]] inline void distill(V (&terms)[n]) {
  V total = terms[n - 1];
  for (int i = n - 2; i >= 0; --i) {
    const Pair<V> s = two_sum(terms[i], total);
    total = s.hi;
    terms[i + 1] = s.lo;
  }
  terms[0] = total;
}

// Any finite x: multiplies the mantissa by the five words of 2/pi that matter modulo 4.
template <class V>
[[gnu::always_inline]] inline Angle<V> reduce_huge_angle(V x) {
  using I = IntOf<V>;
  const V y = select(abs(x) < constant<V>(kInf), x, constant<V>(0));
  const V ulp_exponent = to_float(shift_right(bits(abs(y)), 52)) - constant<V>(1075);
  const V raw = floor((ulp_exponent + constant<V>(46)) * constant<V>(1.0 / 48));
  const V block = select(raw > constant<V>(0), raw, constant<V>(0));
  const V m = y * exp2_int(block * constant<V>(-48));
  const I index = to_int(block);
  const auto product = [&](int j, double weight) {
    return two_product(m, table<V>(kTwoOverPi, index + constant<I>(j)) * constant<V>(weight));
  };
  const Pair<V> p[5] = {product(0, 1), product(1, 0x1p-48), product(2, 0x1p-96),
                        product(3, 0x1p-144), product(4, 0x1p-192)};
  V terms[8] = {modulo_four(p[0].hi) + modulo_four(p[0].lo),
                modulo_four(p[1].hi),
                modulo_four(p[1].lo),
                modulo_four(p[2].hi),
                p[2].lo,
                p[3].hi,
                p[3].lo,
                p[4].hi};
  distill(terms);
  const V n = round_even(terms[0]);
  terms[0] = terms[0] - n;
  distill(terms);
  distill(terms);
  const Pair<V> fraction = {terms[0], terms[1] + (terms[2] + terms[3])};
  const Pair<V> half_pi = pair_constant<V>(0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54);
  return {n, multiply(fraction, half_pi)};
}

// sin r and cos r for |r| <= pi/4, as pairs whose low words are not normalised.
template <class V>
[[gnu::always_inline]] inline Pair<V> sin_kernel(Pair<V> r) {
  const V z = r.hi * r.hi;
  const V low = fma(r.lo * constant<V>(-0.5), z, r.lo);
  return {r.hi, fma(r.hi * z, horner(z, kSin), low)};
}

template <class V>
[[gnu::always_inline]] inline Pair<V> cos_kernel(Pair<V> r) {
  const V z = r.hi * r.hi;
  const V z_low = fma(r.hi, r.hi, -z);
  const V half = z * constant<V>(0.5);
  const V w = constant<V>(1) - half;
  const V rest = fma(z_low, constant<V>(-0.5), (constant<V>(1) - w) - half);
  return {w, fma(z * z, horner(z, kCos), fma(-r.hi, r.lo, rest))};
}

template <class V>
[[gnu::always_inline]] inline auto is_odd(V integer) {
  const V half = integer * constant<V>(0.5);
  return floor(half) != half;
}

// sin of the angle `turn` quarter turns ahead.
template <class V>
[[gnu::always_inline]] inline V sin_of(Angle<V> a, int turn) {
  using I = IntOf<V>;
  const V q = a.quadrant + constant<V>(turn);
  const Pair<V> p = select(is_odd(q), cos_kernel(a.r), sin_kernel(a.r));
  return from_bits<V>(bits(p.hi + p.lo) ^ ((to_int(q) & constant<I>(2)) << 62));
}

template <class V>
[[gnu::always_inline]] inline V tan_of(Angle<V> a) {
  const auto odd = is_odd(a.quadrant);
  const Pair<V> s_raw = sin_kernel(a.r);
  const Pair<V> c_raw = cos_kernel(a.r);
  const Pair<V> s = fast_two_sum(s_raw.hi, s_raw.lo);
  const Pair<V> c = fast_two_sum(c_raw.hi, c_raw.lo);
  const Pair<V> q = divide(select(odd, c, s), select(odd, s, c));
  return from_bits<V>(bits(q.hi) ^ (to_int(a.quadrant) << 63));
}

// Values too small for the kernels to keep (-0, subnormals), and infinities.
template <class V>
[[gnu::always_inline]] inline V keep_tiny(V x, V value) {
  const V tiny = select(abs(x) < constant<V>(0x1p-30), x, value);
  return select(abs(x) < constant<V>(kInf), tiny, constant<V>(kNan));
}

template <class V>
[[gnu::always_inline]] inline V cbrt(V x) {
  const V y = abs(x);
  const auto subnormal = y < constant<V>(0x1p-1022);
  const auto regular = both(y > constant<V>(0), y < constant<V>(kInf));
  const V a = select(regular, select(subnormal, y * constant<V>(0x1p54), y), constant<V>(1));
  const V e = to_float(shift_right(bits(a), 52)) - constant<V>(1023);
  const V k = floor(e * constant<V>(1.0 / 3) + constant<V>(0x1p-20));
  const V m = a * exp2_int(-k) * exp2_int(-k - k);
  V r = horner(m, kCbrtStart);
  const V cube = r * r * r;
  r = r * (cube + (m + m)) / ((cube + cube) + m);
  // One more step of the same iteration as a correction, its residual exact.
  const Pair<V> square = two_product(r, r);
  const V residual = fma(-square.lo, r, fma(-square.hi, r, m));
  r = fma(r, residual / (constant<V>(3) * m), r);
  const V shift = select(subnormal, constant<V>(-18), constant<V>(0));
  return select(regular, copy_sign(r * exp2_int(k + shift), x), x);
}

template <class V>
[[gnu::always_inline]] inline V hypot(V x, V y) {
  const V u = abs(x);
  const V v = abs(y);
  const V a = select(u > v, u, v);
  const V b = select(u > v, v, u);
  const auto large = a > constant<V>(0x1p500);
  const auto small = a < constant<V>(0x1p-400);
  const V down = select(large, constant<V>(0x1p-600), constant<V>(1));
  const V factor = select(small, constant<V>(0x1p600), down);
  const V up = select(large, constant<V>(0x1p600), constant<V>(1));
  const V back = select(small, constant<V>(0x1p-600), up);
  const V p = a * factor;
  const V q = b * factor;
  const V value = sqrt(add(two_product(p, p), two_product(q, q))).hi * back;
  const auto infinite = either(u == constant<V>(kInf), v == constant<V>(kInf));
  const V number = select(either(is_nan(x), is_nan(y)), x + y, value);
  return select(infinite, constant<V>(kInf), number);
}

}  // namespace tn::TN_LEVEL::math::f64
