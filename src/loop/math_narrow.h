#pragma once
// Shorter forms of f32 functions whose results are rounded to f16 or bf16 next.
//
// The relative error is at most 2^-16, in the tails that f16 cannot hold 2^-13. Nothing is divided,
// and nothing is converted to an integer: a sum rounds, and its last bits are an exponent.

#include "loop/math_f32.h"
#include "loop/op.h"

namespace tn::TN_LEVEL::math::half {

// NaN stays NaN.
template <class V>
[[gnu::always_inline]] inline V at_most(V x, float most) {
  return select(constant<V>(most) < x, constant<V>(most), x);
}
template <class V>
[[gnu::always_inline]] inline V at_least(V x, float least) {
  return select(x < constant<V>(least), constant<V>(least), x);
}

// 2^(x c) = 2^f s / 2^shift with |f| <= 1/2. s is 0 where the exponent is -127.
template <class V>
struct Power {
  V f, s;
};

template <class V>
[[gnu::always_inline]] inline Power<V> split_power(V x, float c, int shift) {
  const V round = constant<V>(0x1.8p23f + 127 + static_cast<float>(shift));
  const V sum = fma(x, constant<V>(c), round);
  const V f = fma(x, constant<V>(c), -(sum - round));
  return {f, from_bits<V>(bits(sum) << 23)};
}

template <class V>
[[gnu::always_inline]] inline V exp2_near(V f) {
  return horner(f, kExp2Narrow);
}

// 2^f - 1, relative to itself.
template <class V>
[[gnu::always_inline]] inline V exp2m1_near(V f) {
  return f * horner(f, kExp2m1Narrow);
}

// 1 / d on [1, 2].
template <class V>
[[gnu::always_inline]] inline V reciprocal(V d) {
  const V r = horner(d, kReciprocalNarrow);
  return fma(r, fma(-d, r, constant<V>(1)), r);
}

inline constexpr float kLog2e = 0x1.715476p+0f;

// The square of exp(x / 2), which is a normal number: results beyond those are rounded once.
template <class V>
[[gnu::always_inline]] inline V squared_power(V x, float c) {
  const Power<V> p = split_power(x, c, 0);
  const V root = exp2_near(p.f) * p.s;
  return root * root;
}

template <class V>
[[gnu::always_inline]] inline V exp(V x) {
  return squared_power(at_most(at_least(x, -176), 90), kLog2e / 2);
}

template <class V>
[[gnu::always_inline]] inline V exp2(V x) {
  return squared_power(at_most(at_least(x, -254), 130), 0.5f);
}

template <class V>
[[gnu::always_inline]] inline V expm1(V x) {
  const Power<V> p = split_power(at_most(at_least(x, -30), 89), kLog2e, -1);
  const V half = fma(p.s, exp2m1_near(p.f), p.s - constant<V>(0.5f));
  return copy_sign(half + half, x);
}

// -(2^t - 1) over 2^t + 1 for t = -2 |x| log2(e).
template <class V>
[[gnu::always_inline]] inline V tanh(V x) {
  const Power<V> p = split_power(at_most(abs(x), 10), -2 * kLog2e, 0);
  const V less = fma(p.s, exp2m1_near(p.f), p.s - constant<V>(1));
  return copy_sign(less * reciprocal(less + constant<V>(2)), x);
}

template <class V>
[[gnu::always_inline]] inline V sigmoid(V x) {
  const Power<V> p = split_power(at_most(abs(x), 105), -kLog2e, 64);
  const V e = exp2_near(p.f) * p.s;
  const V inverse = reciprocal(fma(e, constant<V>(0x1p-64f), constant<V>(1)));
  return select(x < constant<V>(0), e, constant<V>(0x1p64f)) * inverse * constant<V>(0x1p-64f);
}

// -(2^t - 1) with t = log2(erfc(|x|)).
template <class V>
[[gnu::always_inline]] inline V erf(V x) {
  const V y = at_most(abs(x), 4);
  const Power<V> p = split_power(y * horner(y, kErfNarrow), 1, 0);
  return copy_sign(fma(p.s, exp2m1_near(p.f), p.s - constant<V>(1)), x);
}

// 2^65 Q(y), the chance of more than y of the normal distribution, for y in [0, 13.75]: a normal
// number, so its exponent is a sum of integers, which of NaN would overflow.
template <class V>
[[gnu::always_inline]] inline V normal_tail(V y) {
  const V t = horner(y, kNormalNarrow), round = constant<V>(0x1.8p23f + 65);
  const V sum = t + round;
  return from_bits<V>(bits(exp2_near(t - (sum - round))) + (bits(sum) << 23));
}

template <class V>
[[gnu::always_inline]] inline V erfc(V x) {
  const V a = abs(x * constant<V>(0x1.6a09e6p+0f)), most = constant<V>(13.75f);
  const V tail = normal_tail(select(a < most, a, most)) * constant<V>(0x1p-64f);
  return select(is_nan(a), a, select(x < constant<V>(0), constant<V>(2) - tail, tail));
}

template <class V>
[[gnu::always_inline]] inline V gelu(V x) {
  const V most = constant<V>(13.75f);
  const V y = select(abs(x) < most, abs(x), most);
  const V positive = select(x < constant<V>(0), constant<V>(-0.0f), x);
  return fma(normal_tail(y) * y, constant<V>(-0x1p-65f), positive);
}

// log(u) = e ln(2) + log(1 + f) for normal u > 0; of other u it makes nothing that overflows.
template <class V>
struct Logarithm {
  V e, f;
};

template <class V>
[[gnu::always_inline]] inline Logarithm<V> split_logarithm(V u) {
  using I = IntOf<V>;
  constexpr int32_t kRootHalf = 0x3f3504f3;
  const I b = bits(abs(u)) - constant<I>(kRootHalf);
  const V e = from_bits<V>((b >> 23) + constant<I>(0x4b400000));
  const V m = from_bits<V>((b & constant<I>(0x007fffff)) + constant<I>(kRootHalf));
  return {e - constant<V>(0x1.8p23f), m - constant<V>(1)};
}

template <class V>
[[gnu::always_inline]] inline V log_scaled(V x, float factor, float ln2) {
  const auto subnormal = x < constant<V>(0x1p-126f);
  const V less = select(subnormal, constant<V>(-64), constant<V>(0));
  const V u = select(subnormal, x * constant<V>(0x1p64f), x);
  const Logarithm<V> a = split_logarithm(u);
  const V near = a.f * horner(a.f, kLogNarrow) * constant<V>(factor);
  return f64::log_domain(x, fma(a.e + less, constant<V>(ln2), near));
}

template <class V>
[[gnu::always_inline]] inline V log(V x) {
  return log_scaled(x, 1, 0x1.62e43p-1f);
}
template <class V>
[[gnu::always_inline]] inline V log2(V x) {
  return log_scaled(x, kLog2e, 1);
}
template <class V>
[[gnu::always_inline]] inline V log10(V x) {
  return log_scaled(x, 0x1.bcb7b2p-2f, 0x1.344136p-2f);
}

template <class V>
[[gnu::always_inline]] inline V log1p(V x) {
  const Logarithm<V> a = split_logarithm(x + constant<V>(1));
  const V f = select(a.e == constant<V>(0), x, a.f);
  const V value = fma(a.e, constant<V>(0x1.62e43p-1f), f * horner(f, kLogNarrow));
  return select(x == constant<V>(0), x, f64::log_domain(x + constant<V>(1), value));
}

}  // namespace tn::TN_LEVEL::math::half

namespace tn::TN_LEVEL::math {

/// Calls visit(op, function) for every op that has a narrow form (loop::OpFacts::narrow).
template <class Visit>
inline void visit_narrow(Visit visit) {
  using loop::Op;
  visit(Op::exp, [](auto x) { return half::exp(x); });
  visit(Op::exp2, [](auto x) { return half::exp2(x); });
  visit(Op::expm1, [](auto x) { return half::expm1(x); });
  visit(Op::log, [](auto x) { return half::log(x); });
  visit(Op::log2, [](auto x) { return half::log2(x); });
  visit(Op::log10, [](auto x) { return half::log10(x); });
  visit(Op::log1p, [](auto x) { return half::log1p(x); });
  visit(Op::tanh, [](auto x) { return half::tanh(x); });
  visit(Op::erf, [](auto x) { return half::erf(x); });
  visit(Op::erfc, [](auto x) { return half::erfc(x); });
  visit(Op::sigmoid, [](auto x) { return half::sigmoid(x); });
  visit(Op::gelu, [](auto x) { return half::gelu(x); });
}

}  // namespace tn::TN_LEVEL::math
