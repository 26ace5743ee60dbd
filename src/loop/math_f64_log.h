#pragma once
// Logarithms, inverse hyperbolic functions and powers in f64.

#include "loop/math_f64_exp.h"

namespace tn::TN_LEVEL::math::f64 {

inline constexpr double kInf = __builtin_inf();
inline constexpr double kNan = __builtin_nan("");

// x = 2^e m with m in [sqrt(1/2), sqrt(2)), for positive finite x.
template <class V>
struct Mantissa {
  V m, e;
};

template <class V>
[[gnu::always_inline]] inline Mantissa<V> split_exponent(V x) {
  using I = IntOf<V>;
  constexpr int64_t kRootHalf = 0x3fe6a09e667f3bcd;
  const auto subnormal = x < constant<V>(0x1p-1022);
  const V y = select(subnormal, x * constant<V>(0x1p54), x);
  const I b = bits(y) + constant<I>(0x3ff0000000000000 - kRootHalf);
  const V e = to_float(shift_right(b, 52));
  const V bias = select(subnormal, constant<V>(1023 + 54), constant<V>(1023));
  const I fraction = b & constant<I>(0x000fffffffffffff);
  return {from_bits<V>(fraction + constant<I>(kRootHalf)), e - bias};
}

// What log gives outside (0, inf); `value` inside.
template <class V>
[[gnu::always_inline]] inline V log_domain(V x, V value) {
  const V outside = select(x == constant<V>(0), constant<V>(-kInf), constant<V>(kNan));
  return select(x > constant<V>(0), select(x < constant<V>(kInf), value, x), outside);
}

template <class V>
[[gnu::always_inline]] inline V log_argument(V x) {
  const auto valid = both(x > constant<V>(0), x < constant<V>(kInf));
  return select(valid, x, constant<V>(1));
}

// log(1 + f) = f - (h - s (h + R)), h = f^2 / 2, s = f / (2 + f), R = 2 s^2 (1/3 + s^2 B).
template <class V>
[[gnu::always_inline]] inline V log_positive(V x) {
  const Mantissa<V> a = split_exponent(x);
  const V f = a.m - constant<V>(1);
  const V s = f / (constant<V>(2) + f);
  const V z = s * s;
  const V rest = (z + z) * fma(z, horner(z, kAtanh), constant<V>(0x1.5555555555555p-2));
  const V h = constant<V>(0.5) * f * f;
  const V low = fma(s, h + rest, a.e * constant<V>(0x1.ef35793c7673p-45));
  const Pair<V> sum = fast_two_sum(a.e * constant<V>(0x1.62e42fefa38p-1), f);
  return sum.hi + (sum.lo - (h - low));
}

template <class V>
[[gnu::always_inline]] inline V log(V x) {
  return log_domain(x, log_positive(log_argument(x)));
}

// log of the positive finite number x + lo, error about 2^-65 of the result; |lo| << x.
template <class V>
[[gnu::always_inline]] inline Pair<V> log_pair(V x, V lo) {
  const Mantissa<V> a = split_exponent(x);
  const V down = select(a.e < constant<V>(1000), -a.e, constant<V>(-1000));
  const V up = select(down < constant<V>(1000), down, constant<V>(1000));
  const Pair<V> f = two_sum(a.m - constant<V>(1), lo * exp2_int(up));
  const Pair<V> s = divide(f, add(pair_constant<V>(2, 0), f));
  const Pair<V> z = multiply(s, s);
  const Pair<V> third =
      fast_two_sum(constant<V>(0x1.5555555555555p-2), z.hi * horner(z.hi, kAtanh));
  const Pair<V> series = multiply(z, {third.hi, third.lo + constant<V>(0x1.5555555555555p-56)});
  const Pair<V> log_m = add(s, multiply(s, series));
  const Pair<V> exponent = {a.e * constant<V>(0x1.62e42fefa38p-1),
                            a.e * constant<V>(0x1.ef35793c7673p-45)};
  return add(exponent, {log_m.hi + log_m.hi, log_m.lo + log_m.lo});
}

template <class V>
[[gnu::always_inline]] inline V log2(V x) {
  const Pair<V> ln = log_pair(log_argument(x), constant<V>(0));
  const Pair<V> inverse = pair_constant<V>(0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56);
  return log_domain(x, multiply(ln, inverse).hi);
}

template <class V>
[[gnu::always_inline]] inline V log10(V x) {
  const Pair<V> ln = log_pair(log_argument(x), constant<V>(0));
  const Pair<V> inverse = pair_constant<V>(0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57);
  return log_domain(x, multiply(ln, inverse).hi);
}

template <class V>
[[gnu::always_inline]] inline V log1p(V x) {
  const auto valid = both(x > constant<V>(-1), x < constant<V>(kInf));
  const Pair<V> sum = two_sum(constant<V>(1), select(valid, x, constant<V>(0)));
  const V value = log_domain(x + constant<V>(1), log_pair(sum.hi, sum.lo).hi);
  // Near -1 and below 2^-54 the rounded x + 1 decides nothing but the domain.
  return select(abs(x) < constant<V>(0x1p-54), x, value);
}

// log(y + sqrt(y^2 + 1)) for y = |x|; beyond 2^30 the root is y, and 2y is split off as ln(2).
template <class V>
[[gnu::always_inline]] inline V asinh(V x) {
  const V y = abs(x);
  const auto large = y > constant<V>(0x1p30);
  const V a = select(y <= constant<V>(0x1p30), y, constant<V>(1));
  const Pair<V> square = two_product(a, a);
  const Pair<V> one = pair_constant<V>(1, 0);
  const Pair<V> sum = add({a, constant<V>(0)}, sqrt(add(square, one)));
  const Pair<V> far = {log_argument(y), constant<V>(0)};
  const Pair<V> argument = select(large, far, sum);
  const Pair<V> ln = log_pair(argument.hi, argument.lo);
  const Pair<V> ln2 = pair_constant<V>(0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56);
  const V value = select(large, add(ln, ln2), ln).hi;
  const V z = x * x;
  const V small = fma(x * z, fma(z, constant<V>(0.075), constant<V>(-1.0 / 6)), x);
  const V finite = select(y < constant<V>(0x1p-12), small, copy_sign(value, x));
  const auto keep = either(y < constant<V>(0x1p-30), !(y < constant<V>(kInf)));
  return select(keep, x, finite);
}

template <class V>
[[gnu::always_inline]] inline V acosh(V x) {
  const auto large = x > constant<V>(0x1p30);
  const V a = select(both(x >= constant<V>(1), !large), x, constant<V>(1));
  const V t = a - constant<V>(1);
  const Pair<V> square = multiply(two_sum(a, constant<V>(-1)), two_sum(a, constant<V>(1)));
  const Pair<V> offset = add(two_sum(a, constant<V>(-1)), sqrt(square));
  const Pair<V> sum = add(pair_constant<V>(1, 0), offset);
  const Pair<V> far = {log_argument(x), constant<V>(0)};
  const Pair<V> argument = select(large, far, sum);
  const Pair<V> ln = log_pair(argument.hi, argument.lo);
  const Pair<V> ln2 = pair_constant<V>(0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56);
  const V value = select(large, add(ln, ln2), ln).hi;
  const V inside = select(t == constant<V>(0), select(large, value, t), value);
  return select(x >= constant<V>(1), select(x < constant<V>(kInf), inside, x), constant<V>(kNan));
}

// log((1 + x) / (1 - x)) / 2.
template <class V>
[[gnu::always_inline]] inline V atanh(V x) {
  const V y = abs(x);
  const V a = select(y < constant<V>(1), y, constant<V>(0));
  const Pair<V> ratio = divide(two_sum(constant<V>(1), a), two_sum(constant<V>(1), -a));
  const V value = constant<V>(0.5) * log_pair(ratio.hi, ratio.lo).hi;
  const V z = x * x;
  const V small = fma(x * z, fma(z, constant<V>(0.2), constant<V>(1.0 / 3)), x);
  const V inside = select(y < constant<V>(0x1p-12), small, copy_sign(value, x));
  const V edge = select(y == constant<V>(1), copy_sign(constant<V>(kInf), x), constant<V>(kNan));
  const V result = select(y < constant<V>(1), inside, edge);
  return select(y < constant<V>(0x1p-30), x, result);
}

// max + log1p(exp(-|a - b|)), in pairs because the two terms may cancel.
template <class V>
[[gnu::always_inline]] inline V logaddexp(V a, V b) {
  const V high = select(a > b, a, b);
  const V low = select(a > b, b, a);
  const auto finite = both(abs(a) < constant<V>(kInf), abs(b) < constant<V>(kInf));
  const Pair<V> d =
      two_sum(select(finite, low, constant<V>(0)), select(finite, -high, constant<V>(0)));
  const auto far = d.hi < constant<V>(-746);
  const ExpParts<V> e =
      exp_parts(select(far, constant<V>(-746), d.hi), select(far, constant<V>(0), d.lo));
  const Pair<V> unit = fast_two_sum(constant<V>(1), e.r);
  const Pair<V> p = fast_two_sum(unit.hi, unit.lo + e.t);
  const V zero = constant<V>(0);
  const Pair<V> term = {scale(p.hi, e.n), select(e.n > constant<V>(-900), scale(p.lo, e.n), zero)};
  const Pair<V> sum = add(pair_constant<V>(1, 0), term);
  const V tiny = abs(term.hi);
  const Pair<V> ln = log_pair(sum.hi, sum.lo);
  const Pair<V> extra = select(tiny < constant<V>(0x1p-60), term, ln);
  const V value = add({high, constant<V>(0)}, extra).hi;
  const V special = select(a == b, a, select(either(is_nan(a), is_nan(b)), a + b, high));
  return select(finite, value, special);
}

}  // namespace tn::TN_LEVEL::math::f64
