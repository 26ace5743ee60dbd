#pragma once
// Trigonometric, error and root functions of f32 that are evaluated in f64 and rounded once.

#include "loop/math_f32_wide.h"
#include "loop/math_f64_special.h"

namespace tn::TN_LEVEL::math::f32 {

using f64::Angle;

// Two words of pi/2 are enough for f32 arguments below f64::kHugeAngle.
template <class W>
[[gnu::always_inline]] inline Angle<W> reduce_angle(W x) {
  const W n = round_even(x * constant<W>(0x1.45f306dc9c883p-1));
  const W t = fma(-n, constant<W>(0x1.921fb544p+0), x);
  return {n, {fma(-n, constant<W>(0x1.0b4611a626331p-34), t), constant<W>(0)}};
}

template <class W>
[[gnu::always_inline]] inline W wide_sin(W r) {
  const W z = r * r;
  return fma(r * z, horner(z, kSinLean), r);
}

template <class W>
[[gnu::always_inline]] inline W wide_cos(W r) {
  const W z = r * r;
  return fma(z * z, horner(z, kCosLean), fma(constant<W>(-0.5), z, constant<W>(1)));
}

template <class W>
[[gnu::always_inline]] inline auto sin_of(Angle<W> a, int turn) {
  using I = IntOf<W>;
  const W q = a.quadrant + constant<W>(turn);
  const W value = select(f64::is_odd(q), wide_cos(a.r.hi), wide_sin(a.r.hi));
  return narrow(from_bits<W>(bits(value) ^ ((to_int(q) & constant<I>(2)) << 62)));
}

template <class W>
[[gnu::always_inline]] inline auto tan_of(Angle<W> a) {
  const auto odd = f64::is_odd(a.quadrant);
  const W s = wide_sin(a.r.hi);
  const W c = wide_cos(a.r.hi);
  const W q = select(odd, c, s) / select(odd, s, c);
  return narrow(from_bits<W>(bits(q) ^ (to_int(a.quadrant) << 63)));
}

template <class V>
[[gnu::always_inline]] inline V atan2(V y, V x) {
  using W = decltype(widen(x));
  const W zero = constant<W>(0);
  const W one = constant<W>(1);
  const W inf = constant<W>(kInf);
  const W u = widen(abs(y));
  const W v = widen(abs(x));
  const auto swapped = u > v;
  const W top = select(swapped, u, v);
  const W bottom = select(swapped, v, u);
  const auto infinite = top == inf;
  const W a = select(either(infinite, top == zero), one, top);
  const W b = select(infinite, select(bottom == inf, one, zero), bottom);
  using I = IntOf<V>;
  const f64::Octant<W> o = f64::find_octant(a, b, swapped, bits(x) < constant<I>(0));
  const W q = o.num.hi / o.den.hi;
  const W z = q * q;
  const W angle = fma(q * z, horner(z, kAtanLean), q);
  const W value = fma(o.k, constant<W>(0x1.921fb54442d18p-1), o.sign * angle);
  return select(either(is_nan(x), is_nan(y)), x + y, copy_sign(narrow(value), y));
}

template <class V>
[[gnu::always_inline]] inline V atan(V x) {
  using W = decltype(widen(x));
  const W one = constant<W>(1);
  const W y = widen(abs(x));
  const auto above = y > one;
  const W top = select(above, y, one);
  const W bottom = select(above, one, y);
  const f64::Octant<W> o = f64::find_octant(top, bottom, above, y < constant<W>(0));
  const W q = o.num.hi / o.den.hi;
  const W z = q * q;
  const W angle = fma(q * z, horner(z, kAtanLean), q);
  const W value = fma(o.k, constant<W>(0x1.921fb54442d18p-1), o.sign * angle);
  return copy_sign(narrow(value), x);
}

// asin(x), or with s = sqrt((1 - |x|) / 2) above 1/2: pi/2 - asin|x| = 2 asin(s).
template <class W>
[[gnu::always_inline]] inline W wide_asin(W x) {
  const auto small = abs(x) <= constant<W>(0.5);
  const W half = (constant<W>(1) - abs(x)) * constant<W>(0.5);
  const W z = select(small, x * x, half);
  const W s = select(small, x, sqrt(half));
  return fma(s * z, horner(z, kAsinLean), s);
}

template <class V>
[[gnu::always_inline]] inline V asin(V x) {
  using W = decltype(widen(x));
  const W p = wide_asin(widen(x));
  const W large = fma(constant<W>(-2), p, constant<W>(0x1.921fb54442d18p+0));
  const auto small = abs(x) <= constant<V>(0.5);
  return copy_sign(narrow(select(small, p, large)), x);
}

template <class V>
[[gnu::always_inline]] inline V acos(V x) {
  using W = decltype(widen(x));
  const W w = widen(x);
  const W p = wide_asin(w);
  const auto small = abs(w) <= constant<W>(0.5);
  const auto negative = w < constant<W>(0);
  const W base = select(negative, constant<W>(0x1.921fb54442d18p+1), constant<W>(0));
  const W factor = select(negative, constant<W>(-2), constant<W>(2));
  const W middle = constant<W>(0x1.921fb54442d18p+0) - p;
  return narrow(select(small, middle, fma(factor, p, base)));
}

template <class V>
[[gnu::always_inline]] inline V erfinv(V x) {
  using W = decltype(widen(x));
  const auto inside = abs(x) < constant<V>(1);
  const W y = widen(select(inside, x, constant<V>(0)));
  const W square = y * y;
  const W w = -wide_log1p(-square);
  const W centre = horner(w - constant<W>(3), kErfinvCentreLean);
  const W tail = horner(sqrt(w) - constant<W>(3.25), kErfinvTailLean);
  const W value = y * select(w < constant<W>(6), centre, tail);
  const V at_edge = copy_sign(constant<V>(kInf), x);
  const V edge = select(abs(x) == constant<V>(1), at_edge, constant<V>(kNan));
  return select(inside, narrow(value), edge);
}

// One step of third order after the starting polynomial, then Newton: both in f64.
template <class V>
[[gnu::always_inline]] inline V cbrt(V x) {
  using W = decltype(widen(x));
  const auto regular = both(abs(x) > constant<V>(0), abs(x) < constant<V>(kInf));
  const W a = widen(select(regular, abs(x), constant<V>(1)));
  const W e = to_float(shift_right(bits(a), 52)) - constant<W>(1023);
  const W k = floor(e * constant<W>(1.0 / 3) + constant<W>(0x1p-20));
  const W m = a * exp2_int(constant<W>(-3) * k);
  const W r = horner(m, kCbrtStart);
  const W cube = r * r * r;
  const W root = r * (cube + (m + m)) / ((cube + cube) + m);
  return select(regular, copy_sign(narrow(root * exp2_int(k)), x), x);
}

}  // namespace tn::TN_LEVEL::math::f32
