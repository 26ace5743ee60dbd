#pragma once
// The primitive operations the math functions are written in, for native float and double.
//
// A function is one template over a value type V. Any V works that offers, found by
// argument-dependent lookup: + - * / and unary -, comparisons (giving a mask), mask & | !, fma,
// sqrt, floor, trunc, round_even, abs, select, bits, shift_right (logical), to_int, to_float,
// widen, narrow and, as static members, V::constant(x), V::from_bits(i), V::table(words, i),
// V::kBits; its integer type offers
// + - & | ^ << >> and Int::constant. `rarely` has a default that needs no overload.

#include <bit>
#include <cstdint>
#include <type_traits>
#include <utility>

#ifndef TN_LEVEL
#define TN_LEVEL generic
#endif

namespace tn::TN_LEVEL::math {

[[gnu::always_inline]] inline float fma(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
[[gnu::always_inline]] inline double fma(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}
[[gnu::always_inline]] inline float sqrt(float x) { return __builtin_sqrtf(x); }
[[gnu::always_inline]] inline double sqrt(double x) { return __builtin_sqrt(x); }
[[gnu::always_inline]] inline float floor(float x) { return __builtin_floorf(x); }
[[gnu::always_inline]] inline double floor(double x) { return __builtin_floor(x); }
[[gnu::always_inline]] inline float trunc(float x) { return __builtin_truncf(x); }
[[gnu::always_inline]] inline double trunc(double x) { return __builtin_trunc(x); }
[[gnu::always_inline]] inline float abs(float x) { return __builtin_fabsf(x); }
[[gnu::always_inline]] inline double abs(double x) { return __builtin_fabs(x); }

// The rounding mode is the default one everywhere in the library.
[[gnu::always_inline]] inline float round_even(float x) { return __builtin_rintf(x); }
[[gnu::always_inline]] inline double round_even(double x) { return __builtin_rint(x); }

template <class T>
[[gnu::always_inline]] inline T select(bool mask, T a, T b)
  requires std::is_arithmetic_v<T>
{
  return mask ? a : b;
}

[[gnu::always_inline]] inline int32_t bits(float x) { return std::bit_cast<int32_t>(x); }
[[gnu::always_inline]] inline int64_t bits(double x) { return std::bit_cast<int64_t>(x); }

[[gnu::always_inline]] inline int32_t shift_right(int32_t i, int n) {
  return static_cast<int32_t>(static_cast<uint32_t>(i) >> n);
}
[[gnu::always_inline]] inline int64_t shift_right(int64_t i, int n) {
  return static_cast<int64_t>(static_cast<uint64_t>(i) >> n);
}

// For f64, adding 1.5 * 2^52 leaves the integer in the low bits: exact for |x| < 2^51, and it
// vectorises where the machine has no 64-bit conversion. No caller leaves that range.
[[gnu::always_inline]] inline int32_t to_int(float x) { return static_cast<int32_t>(x); }
[[gnu::always_inline]] inline int64_t to_int(double x) {
  // Unsigned, because a lane that a select drops later may hold anything.
  return static_cast<int64_t>(std::bit_cast<uint64_t>(x + 0x1.8p52) - 0x4338000000000000u);
}
[[gnu::always_inline]] inline float to_float(int32_t i) { return static_cast<float>(i); }
[[gnu::always_inline]] inline double to_float(int64_t i) {
  return std::bit_cast<double>(static_cast<uint64_t>(i) + 0x4338000000000000u) - 0x1.8p52;
}

[[gnu::always_inline]] inline double widen(float x) { return x; }
[[gnu::always_inline]] inline float narrow(double x) { return static_cast<float>(x); }

// A constant of a float, integer or builder type.
template <class V, class C>
[[gnu::always_inline]] inline V constant(C x) {
  if constexpr (std::is_arithmetic_v<V>) {
    return static_cast<V>(x);
  } else {
    return V::constant(x);
  }
}

template <class V, class I>
[[gnu::always_inline]] inline V from_bits(I i) {
  if constexpr (std::is_arithmetic_v<V>) {
    return std::bit_cast<V>(i);
  } else {
    return V::from_bits(i);
  }
}

// The word at a computed index of a constant array.
template <class V, class I>
[[gnu::always_inline]] inline V table(const double* words, I index) {
  if constexpr (std::is_arithmetic_v<V>) {
    return static_cast<V>(words[index]);
  } else {
    return V::table(words, index);
  }
}

// An expensive value needed by few elements; builders compute both and select.
template <class M, class F, class V>
[[gnu::always_inline]] inline V rarely(M mask, F&& rare, V common) {
  if constexpr (std::is_arithmetic_v<V>) {
    return mask ? rare() : common;
  } else {
    return select(mask, rare(), common);
  }
}

template <class V>
constexpr int bit_width() {
  if constexpr (std::is_arithmetic_v<V>) {
    return 8 * sizeof(V);
  } else {
    return V::kBits;
  }
}

// Masks are combined by functions because & of two native bools is an int.
[[gnu::always_inline]] inline bool both(bool a, bool b) { return a & b; }
[[gnu::always_inline]] inline bool either(bool a, bool b) { return a | b; }
template <class M>
[[gnu::always_inline]] inline M both(M a, M b)
  requires std::is_class_v<M>
{
  return a & b;
}
template <class M>
[[gnu::always_inline]] inline M either(M a, M b)
  requires std::is_class_v<M>
{
  return a | b;
}

template <class V>
using IntOf = decltype(bits(std::declval<V>()));

// |x| with the sign of s.
template <class V>
[[gnu::always_inline]] inline V copy_sign(V x, V s) {
  using I = IntOf<V>;
  const I sign =
      constant<I>(std::bit_cast<std::conditional_t<bit_width<V>() == 32, int32_t, int64_t>>(
          std::conditional_t < bit_width<V>() == 32, float, double > (-0.0)));
  return from_bits<V>(bits(abs(x)) | (bits(s) & sign));
}

template <class V>
[[gnu::always_inline]] inline auto is_nan(V x) {
  return x != x;
}

// c[0] + c[1] z + ... by Horner's rule with fused steps.
template <class V, class C, int n, int from = 0>
[[gnu::always_inline]] inline V horner(V z, const C (&c)[n]) {
  if constexpr (from == n - 1) {
    return constant<V>(c[from]);
  } else {
    return fma(horner<V, C, n, from + 1>(z, c), z, constant<V>(c[from]));
  }
}

// c[1] + c[2] z + ...: what multiplies z, for callers that add c[0] with more care.
template <class V, class C, int n>
[[gnu::always_inline]] inline V horner_tail(V z, const C (&c)[n]) {
  return horner<V, C, n, 1>(z, c);
}

// 2^n for integral n whose result is normal.
template <class V>
[[gnu::always_inline]] inline V exp2_int(V n) {
  using I = IntOf<V>;
  if constexpr (bit_width<V>() == 32) {
    return from_bits<V>((to_int(n) + constant<I>(127)) << 23);
  } else {
    return from_bits<V>((to_int(n) + constant<I>(1023)) << 52);
  }
}

template <class V>
[[gnu::always_inline]] inline V rsqrt(V x) {
  return constant<V>(1) / sqrt(x);
}

}  // namespace tn::TN_LEVEL::math
