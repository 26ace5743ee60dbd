#pragma once
// The error function, its complement and its inverse in f64.

#include "loop/math_f64_log.h"

namespace tn::TN_LEVEL::math::f64 {

// erf(x) - x for |x| <= 1.
template <class V>
[[gnu::always_inline]] inline V erf_minus_x(V x) {
  return x * horner(x * x, kErf);
}

// A value p 2^n.
template <class V>
struct Scaled {
  Pair<V> p;
  V n;
};

// erfc(y) = exp(-y^2) g(t) / (1 + 2y), t = (y - 3) / (y + 3), for y in [0.4, 28].
template <class V>
[[gnu::always_inline]] inline Scaled<V> erfc_tail(V y) {
  const Pair<V> square = two_product(y, y);
  const ExpParts<V> e = exp_parts(-square.hi, -square.lo);
  const Pair<V> exp_sum = fast_two_sum(constant<V>(1), e.r);
  const Pair<V> exp_pair = fast_two_sum(exp_sum.hi, exp_sum.lo + e.t);
  const V three = constant<V>(3);
  const V t = (y - three) / (y + three);
  const Pair<V> g = fast_two_sum(constant<V>(kErfcx[0]), t * horner_tail(t, kErfcx));
  return {multiply(exp_pair, divide(g, two_sum(constant<V>(1), y + y))), e.n};
}

template <class V>
[[gnu::always_inline]] inline V erf(V x) {
  const V y = clamp(abs(x), 0.5, 6.5);
  const Scaled<V> tail = erfc_tail(y);
  const V s = exp2_int(tail.n);
  const Pair<V> sum = fast_two_sum(constant<V>(1), -tail.p.hi * s);
  const V large = copy_sign(sum.hi + fma(-tail.p.lo, s, sum.lo), x);
  const V value = select(abs(x) < constant<V>(1), x + erf_minus_x(x), large);
  return select(is_nan(x), x, value);
}

template <class V>
[[gnu::always_inline]] inline V erfc(V x) {
  const Scaled<V> tail = erfc_tail(clamp(abs(x), 0.4, 28));
  const V n = tail.n;
  const V right = scale(tail.p.hi, n);
  const V s = exp2_int(select(n > constant<V>(-1000), n, constant<V>(-1000)));
  const Pair<V> sum = fast_two_sum(constant<V>(2), -tail.p.hi * s);
  const V left = sum.hi + fma(-tail.p.lo, s, sum.lo);
  const Pair<V> near = two_sum(constant<V>(1), -x);
  const V small = near.hi + (near.lo - erf_minus_x(x));
  const V outer = select(x < constant<V>(0), left, right);
  const V value = select(abs(x) < constant<V>(0.5), small, outer);
  return select(is_nan(x), x, value);
}

// erfinv(x) / x as a smooth function of w = -log(1 - x^2), in three pieces.
template <class V>
[[gnu::always_inline]] inline V erfinv(V x) {
  const auto inside = abs(x) < constant<V>(1);
  const V y = select(inside, x, constant<V>(0));
  const V w = -log_positive(fma(-y, y, constant<V>(1)));
  const V root = sqrt(w);
  const V centre = horner(w - constant<V>(3), kErfinvCentre);
  const V tail = horner(root - constant<V>(3.25), kErfinvTail);
  const V far = horner(root - constant<V>(5), kErfinvFar);
  const V outer = select(root < constant<V>(4), tail, far);
  const V value = x * select(w < constant<V>(6), centre, outer);
  const auto at_edge = abs(x) == constant<V>(1);
  const V edge = select(at_edge, copy_sign(constant<V>(kInf), x), constant<V>(kNan));
  return select(inside, value, edge);
}

}  // namespace tn::TN_LEVEL::math::f64
