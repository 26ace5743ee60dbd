#pragma once
// Sums and products of unevaluated pairs hi + lo, for results that need more than one word.

#include "loop/math_primitives.h"

namespace tn::TN_LEVEL::math {

template <class V>
struct Pair {
  V hi, lo;
};

// Exact a + b.
template <class V>
[[gnu::always_inline]] inline Pair<V> two_sum(V a, V b) {
  const V s = a + b;
  const V t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}

// Exact a + b where |a| >= |b| or a = 0.
template <class V>
[[gnu::always_inline]] inline Pair<V> fast_two_sum(V a, V b) {
  const V s = a + b;
  return {s, b - (s - a)};
}

// Exact a * b.
template <class V>
[[gnu::always_inline]] inline Pair<V> two_product(V a, V b) {
  const V p = a * b;
  return {p, fma(a, b, -p)};
}

template <class V>
[[gnu::always_inline]] inline Pair<V> add(Pair<V> a, Pair<V> b) {
  const Pair<V> s = two_sum(a.hi, b.hi);
  return fast_two_sum(s.hi, s.lo + (a.lo + b.lo));
}

template <class V>
[[gnu::always_inline]] inline Pair<V> multiply(Pair<V> a, Pair<V> b) {
  const V p = a.hi * b.hi;
  const V e = fma(a.hi, b.hi, -p);
  return fast_two_sum(p, fma(a.hi, b.lo, fma(a.lo, b.hi, e)));
}

template <class V>
[[gnu::always_inline]] inline Pair<V> divide(Pair<V> a, Pair<V> b) {
  const V q = a.hi / b.hi;
  const V rest = fma(-q, b.hi, a.hi) + fma(-q, b.lo, a.lo);
  return fast_two_sum(q, rest / b.hi);
}

template <class V>
[[gnu::always_inline]] inline Pair<V> sqrt(Pair<V> a) {
  const V s = sqrt(a.hi);
  const V rest = fma(-s, s, a.hi) + a.lo;
  return fast_two_sum(s, select(s > constant<V>(0), rest / (s + s), s));
}

template <class V, class M>
[[gnu::always_inline]] inline Pair<V> select(M mask, Pair<V> a, Pair<V> b) {
  return {select(mask, a.hi, b.hi), select(mask, a.lo, b.lo)};
}

template <class V>
[[gnu::always_inline]] inline Pair<V> pair_constant(double hi, double lo) {
  return {constant<V>(hi), constant<V>(lo)};
}

}  // namespace tn::TN_LEVEL::math
