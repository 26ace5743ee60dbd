#pragma once
// The elementary functions, each one template over a value type of f32 or f64 width.
//
// Bounds: f32 exp, exp2, log and sqrt within 1 ulp, the rest within 2, gelu within 4.5 where it is
// not tiny; f64 within 2 ulp, erfinv within 8, gelu within 4 of normal results. Special values as
// in C99. Nothing here branches on a value, so a native loop vectorises and a builder type records
// the same operations: see math_primitives.h for what a type must offer.

#include "loop/math_angle.h"
#include "loop/math_f64_lgamma.h"
#include "loop/math_gelu.h"

namespace tn::TN_LEVEL::math {

template <class V>
[[gnu::always_inline]] inline V exp(V x) {
  if constexpr (is_f32<V>)
    return f32::exp(x);
  else
    return f64::exp(x);
}
template <class V>
[[gnu::always_inline]] inline V exp2(V x) {
  if constexpr (is_f32<V>)
    return f32::exp2(x);
  else
    return f64::exp2(x);
}
template <class V>
[[gnu::always_inline]] inline V expm1(V x) {
  if constexpr (is_f32<V>)
    return f32::expm1(x);
  else
    return f64::expm1(x);
}
template <class V>
[[gnu::always_inline]] inline V log(V x) {
  if constexpr (is_f32<V>)
    return f32::log(x);
  else
    return f64::log(x);
}
template <class V>
[[gnu::always_inline]] inline V log2(V x) {
  if constexpr (is_f32<V>)
    return f32::log2(x);
  else
    return f64::log2(x);
}
template <class V>
[[gnu::always_inline]] inline V log10(V x) {
  if constexpr (is_f32<V>)
    return f32::log10(x);
  else
    return f64::log10(x);
}
template <class V>
[[gnu::always_inline]] inline V log1p(V x) {
  if constexpr (is_f32<V>)
    return f32::log1p(x);
  else
    return f64::log1p(x);
}
template <class V>
[[gnu::always_inline]] inline V cbrt(V x) {
  if constexpr (is_f32<V>)
    return f32::cbrt(x);
  else
    return f64::cbrt(x);
}
template <class V>
[[gnu::always_inline]] inline V asin(V x) {
  if constexpr (is_f32<V>)
    return f32::asin(x);
  else
    return f64::asin(x);
}
template <class V>
[[gnu::always_inline]] inline V acos(V x) {
  if constexpr (is_f32<V>)
    return f32::acos(x);
  else
    return f64::acos(x);
}
template <class V>
[[gnu::always_inline]] inline V atan(V x) {
  if constexpr (is_f32<V>)
    return f32::atan(x);
  else
    return f64::atan(x);
}
template <class V>
[[gnu::always_inline]] inline V sinh(V x) {
  if constexpr (is_f32<V>)
    return f32::sinh(x);
  else
    return f64::sinh(x);
}
template <class V>
[[gnu::always_inline]] inline V cosh(V x) {
  if constexpr (is_f32<V>)
    return f32::cosh(x);
  else
    return f64::cosh(x);
}
template <class V>
[[gnu::always_inline]] inline V tanh(V x) {
  if constexpr (is_f32<V>)
    return f32::tanh(x);
  else
    return f64::tanh(x);
}
template <class V>
[[gnu::always_inline]] inline V asinh(V x) {
  if constexpr (is_f32<V>)
    return f32::asinh(x);
  else
    return f64::asinh(x);
}
template <class V>
[[gnu::always_inline]] inline V acosh(V x) {
  if constexpr (is_f32<V>)
    return f32::acosh(x);
  else
    return f64::acosh(x);
}
template <class V>
[[gnu::always_inline]] inline V atanh(V x) {
  if constexpr (is_f32<V>)
    return f32::atanh(x);
  else
    return f64::atanh(x);
}
template <class V>
[[gnu::always_inline]] inline V erf(V x) {
  if constexpr (is_f32<V>)
    return f32::erf(x);
  else
    return f64::erf(x);
}
template <class V>
[[gnu::always_inline]] inline V erfc(V x) {
  if constexpr (is_f32<V>)
    return f32::erfc(x);
  else
    return f64::erfc(x);
}
template <class V>
[[gnu::always_inline]] inline V erfinv(V x) {
  if constexpr (is_f32<V>)
    return f32::erfinv(x);
  else
    return f64::erfinv(x);
}
template <class V>
[[gnu::always_inline]] inline V sigmoid(V x) {
  if constexpr (is_f32<V>)
    return f32::sigmoid(x);
  else
    return f64::sigmoid(x);
}
template <class V>
[[gnu::always_inline]] inline V pow(V x, V y) {
  if constexpr (is_f32<V>)
    return f32::pow(x, y);
  else
    return f64::pow(x, y);
}
template <class V>
[[gnu::always_inline]] inline V atan2(V y, V x) {
  if constexpr (is_f32<V>)
    return f32::atan2(y, x);
  else
    return f64::atan2(y, x);
}
template <class V>
[[gnu::always_inline]] inline V hypot(V x, V y) {
  if constexpr (is_f32<V>)
    return f32::hypot(x, y);
  else
    return f64::hypot(x, y);
}
template <class V>
[[gnu::always_inline]] inline V logaddexp(V x, V y) {
  if constexpr (is_f32<V>)
    return f32::logaddexp(x, y);
  else
    return f64::logaddexp(x, y);
}

template <class V>
[[gnu::always_inline]] inline V lgamma(V x) {
  if constexpr (is_f32<V>)
    return narrow(f64::lgamma(widen(x)));
  else
    return f64::lgamma(x);
}

// The next number after a towards b: one step in the order of the bits.
template <class V>
[[gnu::always_inline]] inline V nextafter(V a, V b) {
  using I = IntOf<V>;
  const I sign = bits(constant<V>(-0.0));
  const I zero = constant<I>(0), one = constant<I>(1);
  const I least = (bits(b) & sign) | one;  // from zero, towards b
  const auto less = a < b, negative = bits(a) < zero;
  const auto back = either(both(less, negative), !either(less, negative));
  const I moved = bits(a) + select(back, zero - one, one);
  const V next = from_bits<V>(select(a == constant<V>(0), least, moved));
  return select(either(is_nan(a), is_nan(b)), a + b, select(a == b, b, next));
}

}  // namespace tn::TN_LEVEL::math
