#pragma once
// Inverse trigonometric functions and powers in f64.

#include "loop/math_f64_trig.h"

namespace tn::TN_LEVEL::math::f64 {

// k pi/4 as a pair.
template <class V>
[[gnu::always_inline]] inline Pair<V> quarter_pi_times(V k) {
  const Pair<V> p = two_product(k, constant<V>(0x1.921fb54442d18p-1));
  return {p.hi, fma(k, constant<V>(0x1.1a62633145c07p-55), p.lo)};
}

// Where the angle of (x, y) lies: it is k pi/4 + sign * atan(num / den), |num / den| <= tan(pi/8).
template <class V>
struct Octant {
  V k, sign;
  Pair<V> num, den;
};

// Finite a >= b >= 0; `swapped` when a is the ordinate, `left` when the abscissa is negative.
template <class V, class M>
[[gnu::always_inline]] inline Octant<V> find_octant(V a, V b, M swapped, M left) {
  const V zero = constant<V>(0);
  const V one = constant<V>(1);
  const auto middle = b > a * constant<V>(0x1.a827999fcef32p-2);
  const Pair<V> num = select(middle, two_sum(b, -a), Pair<V>{b, zero});
  const Pair<V> den = select(middle, two_sum(a, b), Pair<V>{a, zero});
  const V k0 = select(middle, one, zero);
  const V k1 = select(swapped, constant<V>(2) - k0, k0);
  const V s1 = select(swapped, -one, one);
  return {select(left, constant<V>(4) - k1, k1), select(left, -s1, s1), num, den};
}

// The angle of an octant; a quotient near the subnormals has no low word worth keeping.
template <class V>
[[gnu::always_inline]] inline V octant_angle(Octant<V> o) {
  const Pair<V> quotient = divide(o.num, o.den);
  const V q = quotient.hi;
  const V q_low = select(abs(q) < constant<V>(0x1p-900), constant<V>(0), quotient.lo);
  const V z = q * q;
  const V rest = fma(q * z, horner(z, kAtan), q_low);
  const Pair<V> base = quarter_pi_times(o.k);
  const Pair<V> sum = two_sum(base.hi, o.sign * q);
  return sum.hi + (sum.lo + fma(o.sign, rest, base.lo));
}

template <class V>
[[gnu::always_inline]] inline V atan2(V y, V x) {
  using I = IntOf<V>;
  const V zero = constant<V>(0);
  const V one = constant<V>(1);
  const V inf = constant<V>(kInf);
  const V u = abs(y);
  const V v = abs(x);
  const auto swapped = u > v;
  const V top = select(swapped, u, v);
  const V bottom = select(swapped, v, u);
  const V up = select(top < constant<V>(0x1p-800), constant<V>(0x1p200), one);
  const V factor = select(top > constant<V>(0x1p1000), constant<V>(0x1p-200), up);
  const auto infinite = top == inf;
  const V a = select(either(infinite, top == zero), one, top * factor);
  const V b = select(infinite, select(bottom == inf, one, zero), bottom * factor);
  const V value = octant_angle(find_octant(a, b, swapped, bits(x) < constant<I>(0)));
  return select(either(is_nan(x), is_nan(y)), x + y, copy_sign(value, y));
}

// atan2(x, 1) without the cases that cannot arise; compilers vectorise it only in this form.
template <class V>
[[gnu::always_inline]] inline V atan(V x) {
  const V one = constant<V>(1);
  const V far = constant<V>(0x1p100);  // from here on the angle is pi/2, infinity included
  const V y = select(abs(x) > far, far, abs(x));
  const auto above = y > one;
  const V top = select(above, y, one);
  const V bottom = select(above, one, y);
  const V value = octant_angle(find_octant(top, bottom, above, y < constant<V>(0)));
  return select(is_nan(x), x, copy_sign(value, x));
}

// For |x| <= 1/2: asin(x) = x + tail. Else with s = sqrt((1 - |x|) / 2): pi/2 - asin|x| = 2 (s +
// tail).
template <class V>
struct AsinParts {
  V s, tail;
};

template <class V>
[[gnu::always_inline]] inline AsinParts<V> asin_parts(V x) {
  const auto small = abs(x) <= constant<V>(0.5);
  const V half = (constant<V>(1) - abs(x)) * constant<V>(0.5);
  const V z = select(small, x * x, half);
  const Pair<V> root = sqrt(Pair<V>{half, constant<V>(0)});
  const V s = select(small, x, root.hi);
  const V s_low = select(small, constant<V>(0), root.lo);
  return {s, fma(s * z, horner(z, kAsin), s_low)};
}

template <class V>
[[gnu::always_inline]] inline V asin(V x) {
  const AsinParts<V> p = asin_parts(x);
  const Pair<V> sum = fast_two_sum(constant<V>(0x1.921fb54442d18p+0), p.s * constant<V>(-2));
  const V low = fma(constant<V>(-2), p.tail, constant<V>(0x1.1a62633145c07p-54));
  const V large = copy_sign(sum.hi + (sum.lo + low), x);
  const V value = select(abs(x) <= constant<V>(0.5), p.s + p.tail, large);
  return select(abs(x) < constant<V>(0x1p-30), x, value);
}

template <class V>
[[gnu::always_inline]] inline V acos(V x) {
  const AsinParts<V> p = asin_parts(x);
  const auto small = abs(x) <= constant<V>(0.5);
  const auto negative = x < constant<V>(0);
  // k pi/4 + factor (s + tail)
  const V k = select(small, constant<V>(2), select(negative, constant<V>(4), constant<V>(0)));
  const V factor =
      select(small, constant<V>(-1), select(negative, constant<V>(-2), constant<V>(2)));
  const Pair<V> base = quarter_pi_times(k);
  const Pair<V> sum = two_sum(base.hi, factor * p.s);
  return sum.hi + (sum.lo + fma(factor, p.tail, base.lo));
}

// x^y where neither is NaN; |x| stands for x and the sign is put back by the caller.
template <class V>
[[gnu::always_inline]] inline V pow_magnitude(V x, V y) {
  const V exponent = clamp(y, -0x1p66, 0x1p66);
  const Pair<V> ln = log_pair(log_argument(x), constant<V>(0));
  const V p = ln.hi * exponent;
  const V low = fma(ln.lo, exponent, fma(ln.hi, exponent, -p));
  const auto inside = abs(p) < constant<V>(746);
  const V hi = clamp(p, -746, 710);
  const V value = exp_value(exp_parts(hi, select(inside, low, constant<V>(0))));
  const auto growing = y > constant<V>(0);
  const V of_zero = select(growing, constant<V>(0), constant<V>(kInf));
  const V of_inf = select(growing, constant<V>(kInf), constant<V>(0));
  const V edge = select(x == constant<V>(0), of_zero, of_inf);
  const auto regular = both(x > constant<V>(0), x < constant<V>(kInf));
  return select(regular, value, edge);
}

// The sign and the special cases of x^y around the magnitude; V is f32 or f64.
template <class V>
[[gnu::always_inline]] inline V pow_cases(V x, V y, V magnitude) {
  const V one = constant<V>(1);
  const auto integral = floor(y) == y;
  const V half = y * constant<V>(0.5);
  const auto odd = both(integral, floor(half) != half);
  const V with_sign = select(odd, copy_sign(magnitude, x), magnitude);
  const auto finite_base = abs(x) < constant<V>(kInf);
  const auto undefined = both(both(x < constant<V>(0), finite_base), !integral);
  const V number = select(undefined, constant<V>(kNan), with_sign);
  const V result = select(either(is_nan(x), is_nan(y)), x + y, number);
  return select(either(y == constant<V>(0), x == one), one, result);
}

template <class V>
[[gnu::always_inline]] inline V pow(V x, V y) {
  return pow_cases(x, y, pow_magnitude(abs(x), y));
}

}  // namespace tn::TN_LEVEL::math::f64
