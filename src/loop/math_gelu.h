#pragma once
// gelu(x), x times the normal distribution function of x, and its derivative, without a division.
//
// With y = |x| and Q(y) the chance of more than y, gelu(x) = max(x, 0) - y Q(y): nothing cancels.
// Q(y) = exp(-y^2 / 2) P(t), t = (y - 2) / (y + 3).

#include "loop/math_f32.h"
#include "loop/math_f64_special.h"

namespace tn::TN_LEVEL::math::f32 {

// 1 / (y + 3) for y >= 0: a first guess from the bits and two cubic steps, the last with the sum as
// it is before it is rounded.
template <class V>
[[gnu::always_inline]] inline V reciprocal_beyond_3(V y) {
  using I = IntOf<V>;
  const V one = constant<V>(1), three = constant<V>(3);
  const V d = y + three;
  const V first = from_bits<V>(constant<I>(0x7ef311c3) - bits(d));
  const V e = fma(-d, first, one);
  const V second = fma(first, fma(e, e, e), first);
  const V rest = fma(-y, second, fma(-three, second, one));
  return fma(second, fma(rest, rest, rest), second);
}

// exp(-y^2 / 2) = 2^-64 e, and Q(y) = e q; y is |x|, at most 15, where results vanish.
template <class V>
struct NormalTail {
  V y, e, q;
};

template <class V>
[[gnu::always_inline]] inline NormalTail<V> normal_tail(V x) {
  const V most = constant<V>(15);
  const V y = select(abs(x) < most, abs(x), most);
  // The exponent is rounded by a sum whose last bits are n + 64, which is added to that of e.
  const V round = constant<V>(0x1.8p23f + 64);
  const V half = y * constant<V>(-0.5f);
  const V sum = fma(half * y, constant<V>(0x1.715476p+0f), round);
  const V n = sum - round;
  const V high = fma(half, y, -(n * constant<V>(0x1.62e4p-1f)));
  const V r = fma(n, constant<V>(-0x1.7f7d1cp-20f), high);
  const V power = fma(fma(horner(r, kExpF32), r, constant<V>(1)), r, constant<V>(1));
  const V e = from_bits<V>(bits(power) + (bits(sum) << 23));
  return {y, e, horner((y - constant<V>(2)) * reciprocal_beyond_3(y), kNormalF32)};
}

template <class V>
[[gnu::always_inline]] inline V gelu(V x) {
  const NormalTail<V> t = normal_tail(x);
  const V positive = select(x < constant<V>(0), constant<V>(-0.0f), x);
  return fma(-t.q, t.e * t.y, positive);
}

// Q(y) - y exp(-y^2 / 2) / sqrt(2 pi) for negative x, and one less that.
template <class V>
[[gnu::always_inline]] inline V gelu_slope(V x) {
  const NormalTail<V> t = normal_tail(x);
  const V left = t.e * fma(t.y, constant<V>(-0x1.9884533d43651p-66f), t.q);
  const V value = select(x < constant<V>(0), left, constant<V>(1) - left);
  return select(is_nan(x), x, value);
}

}  // namespace tn::TN_LEVEL::math::f32

namespace tn::TN_LEVEL::math::f64 {

// erfc(-x / sqrt(2)) / 2. What the product by sqrt(1/2) loses is put back: the slope of log erfc(z)
// is about -(z + sqrt(z^2 + 4 / pi)).
template <class V>
[[gnu::always_inline]] inline V normal_distribution(V x) {
  const V root = constant<V>(-0x1.6a09e667f3bcdp-1);
  const V z = x * root;
  const V lost = fma(x, constant<V>(0x1.bdd3413b26456p-55), fma(x, root, -z));
  const V slope = z + sqrt(fma(z, z, constant<V>(0x1.45f306dc9c883p+0)));
  const V half = constant<V>(0.5) * erfc(z);
  return fma(half, -(lost * slope), half);
}

template <class V>
[[gnu::always_inline]] inline V gelu(V x) {
  const V least = constant<V>(-40);  // 0 from there on
  return select(x < least, least, x) * normal_distribution(clamp(x, -40, 40));
}

template <class V>
[[gnu::always_inline]] inline V gelu_slope(V x) {
  const V y = clamp(x, -40, 40);
  const V density = exp(y * y * constant<V>(-0.5)) * constant<V>(0x1.9884533d43651p-2);
  return select(is_nan(x), x, fma(y, density, normal_distribution(y)));
}

}  // namespace tn::TN_LEVEL::math::f64

namespace tn::TN_LEVEL::math {

template <class V>
[[gnu::always_inline]] inline V gelu(V x) {
  if constexpr (bit_width<V>() == 32)
    return f32::gelu(x);
  else
    return f64::gelu(x);
}
template <class V>
[[gnu::always_inline]] inline V gelu_slope(V x) {
  if constexpr (bit_width<V>() == 32)
    return f32::gelu_slope(x);
  else
    return f64::gelu_slope(x);
}

}  // namespace tn::TN_LEVEL::math
