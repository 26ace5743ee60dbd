#pragma once
// The f32 functions that are evaluated in f64 (to about 2^-37) and rounded once at the end.

#include "loop/math_f32.h"
#include "loop/math_f64_inverse.h"

namespace tn::TN_LEVEL::math::f32 {

using f64::kInf;
using f64::kNan;

// exp(x) = s (1 + p) for the f64 value x, |x| < 700.
template <class W>
struct WideExp {
  W s, p;
};

template <class W>
[[gnu::always_inline]] inline WideExp<W> wide_exp_parts(W x) {
  const W n = round_even(x * constant<W>(0x1.71547652b82fep+0));
  const W r = fma(-n, constant<W>(0x1.62e42fefa39efp-1), x);
  return {exp2_int(n), fma(r * r, horner(r, kExpLean), r)};
}

template <class W>
[[gnu::always_inline]] inline W wide_exp(W x) {
  const WideExp<W> e = wide_exp_parts(x);
  return fma(e.s, e.p, e.s);
}

template <class W>
[[gnu::always_inline]] inline W wide_expm1(W x) {
  const WideExp<W> e = wide_exp_parts(x);
  return fma(e.s, e.p, e.s - constant<W>(1));
}

// log(1 + f) where u = 1 + f is positive and normal; f matters only where u lost its bits.
template <class W>
[[gnu::always_inline]] inline W wide_log(W u, W f) {
  using I = IntOf<W>;
  constexpr int64_t kRootHalf = 0x3fe6a09e667f3bcd;
  const I b = bits(u) + constant<I>(0x3ff0000000000000 - kRootHalf);
  const W e = to_float(shift_right(b, 52)) - constant<W>(1023);
  const W m = from_bits<W>((b & constant<I>(0x000fffffffffffff)) + constant<I>(kRootHalf));
  const W g = select(e == constant<W>(0), f, m - constant<W>(1));
  const W s = g / (constant<W>(2) + g);
  const W z = s * s;
  const W tail = z * fma(z, horner(z, kAtanhLean), constant<W>(1.0 / 3));
  const W twice = s + s;
  return fma(e, constant<W>(0x1.62e42fefa39efp-1), fma(twice, tail, twice));
}

template <class W>
[[gnu::always_inline]] inline W wide_log1p(W f) {
  return wide_log(constant<W>(1) + f, f);
}

template <class V>
[[gnu::always_inline]] inline auto wide_log_of(V x) {
  const auto w = widen(f64::log_argument(x));
  return wide_log(w, w - constant<decltype(widen(x))>(1));
}

template <class V>
[[gnu::always_inline]] inline V expm1(V x) {
  const V value = narrow(wide_expm1(widen(clamp(x, -120, 120))));
  return select(either(is_nan(x), x == constant<V>(0)), x, value);
}

template <class V>
[[gnu::always_inline]] inline V log2(V x) {
  using W = decltype(widen(x));
  return f64::log_domain(x, narrow(wide_log_of(x) * constant<W>(0x1.71547652b82fep+0)));
}

template <class V>
[[gnu::always_inline]] inline V log10(V x) {
  using W = decltype(widen(x));
  return f64::log_domain(x, narrow(wide_log_of(x) * constant<W>(0x1.bcb7b1526e50ep-2)));
}

template <class V>
[[gnu::always_inline]] inline V log1p(V x) {
  const auto valid = both(x > constant<V>(-1), x < constant<V>(kInf));
  const V value = narrow(wide_log1p(widen(select(valid, x, constant<V>(0)))));
  const V outside = select(x == constant<V>(-1), constant<V>(-kInf), constant<V>(kNan));
  const V keep = select(either(x == constant<V>(0), x == constant<V>(kInf)), x, outside);
  return select(both(valid, x != constant<V>(0)), value, keep);
}

template <class V>
[[gnu::always_inline]] inline V sinh(V x) {
  using W = decltype(widen(x));
  const W t = wide_expm1(widen(clamp(abs(x), 0, 120)));
  const W value = constant<W>(0.5) * (t + t / (t + constant<W>(1)));
  return select(is_nan(x), x, copy_sign(narrow(value), x));
}

template <class V>
[[gnu::always_inline]] inline V cosh(V x) {
  using W = decltype(widen(x));
  const W e = wide_exp(widen(clamp(abs(x), 0, 120)));
  return select(is_nan(x), x, narrow(constant<W>(0.5) * (e + constant<W>(1) / e)));
}

template <class V>
[[gnu::always_inline]] inline V asinh(V x) {
  using W = decltype(widen(x));
  const W one = constant<W>(1);
  const V finite = select(abs(x) < constant<V>(kInf), abs(x), constant<V>(0));
  const W y = widen(finite);
  const W z = y * y;
  const V value = narrow(wide_log1p(y + z / (one + sqrt(one + z))));
  return select(abs(x) < constant<V>(kInf), copy_sign(value, x), x);
}

template <class V>
[[gnu::always_inline]] inline V acosh(V x) {
  using W = decltype(widen(x));
  const auto inside = both(x >= constant<V>(1), x < constant<V>(kInf));
  const W t = widen(select(inside, x, constant<V>(1))) - constant<W>(1);
  const V value = narrow(wide_log1p(t + sqrt(t * (t + constant<W>(2)))));
  const V outside = select(x == constant<V>(kInf), x, constant<V>(kNan));
  return select(inside, value, outside);
}

template <class V>
[[gnu::always_inline]] inline V atanh(V x) {
  using W = decltype(widen(x));
  const auto inside = abs(x) < constant<V>(1);
  const W y = widen(select(inside, abs(x), constant<V>(0)));
  const W ln = wide_log1p((y + y) / (constant<W>(1) - y));
  const V at_one = copy_sign(constant<V>(kInf), x);
  const V outside = select(abs(x) == constant<V>(1), at_one, constant<V>(kNan));
  return select(inside, copy_sign(narrow(constant<W>(0.5) * ln), x), outside);
}

// x^y = exp(y log x); |x| in (0, inf) is a normal number in f64.
template <class V>
[[gnu::always_inline]] inline V pow(V x, V y) {
  using W = decltype(widen(x));
  const V a = abs(x);
  const W p = clamp(wide_log_of(a) * widen(clamp(y, -0x1p60, 0x1p60)), -200, 200);
  const V value = narrow(wide_exp(p));
  const auto growing = y > constant<V>(0);
  const V of_zero = select(growing, constant<V>(0), constant<V>(kInf));
  const V of_inf = select(growing, constant<V>(kInf), constant<V>(0));
  const V edge = select(a == constant<V>(0), of_zero, of_inf);
  const auto regular = both(a > constant<V>(0), a < constant<V>(kInf));
  return f64::pow_cases(x, y, select(regular, value, edge));
}

template <class V>
[[gnu::always_inline]] inline V logaddexp(V a, V b) {
  using W = decltype(widen(a));
  const V high = select(a > b, a, b);
  const auto finite = both(abs(a) < constant<V>(kInf), abs(b) < constant<V>(kInf));
  const V zero = constant<V>(0);
  const W d = widen(select(finite, a, zero)) - widen(select(finite, b, zero));
  const W e = wide_exp(clamp(-abs(d), -200, 0));
  const V value = narrow(widen(high) + wide_log1p(e));
  const V special = select(a == b, a, select(either(is_nan(a), is_nan(b)), a + b, high));
  return select(finite, value, special);
}

template <class V>
[[gnu::always_inline]] inline V hypot(V x, V y) {
  const auto a = widen(x);
  const auto b = widen(y);
  const V value = narrow(sqrt(fma(a, a, b * b)));
  const V inf = constant<V>(kInf);
  return select(either(abs(x) == inf, abs(y) == inf), inf, value);
}

}  // namespace tn::TN_LEVEL::math::f32
