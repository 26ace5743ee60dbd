#pragma once
// A value type that is not a number: it offers exactly the primitives the math functions may use.

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace tn::math_test {

struct TracedMask {
  explicit TracedMask(bool b) : v(b) {}
  bool v;
  friend TracedMask operator&(TracedMask a, TracedMask b) { return TracedMask(a.v && b.v); }
  friend TracedMask operator|(TracedMask a, TracedMask b) { return TracedMask(a.v || b.v); }
  friend TracedMask operator!(TracedMask a) { return TracedMask(!a.v); }
};

template <class I>
struct TracedInt {
  explicit TracedInt(I i) : v(i) {}
  I v;
  using Unsigned = std::make_unsigned_t<I>;
  static TracedInt constant(I i) { return TracedInt(i); }
  friend TracedInt operator+(TracedInt a, TracedInt b) { return TracedInt(a.v + b.v); }
  friend TracedInt operator-(TracedInt a, TracedInt b) { return TracedInt(a.v - b.v); }
  friend TracedInt operator&(TracedInt a, TracedInt b) { return TracedInt(a.v & b.v); }
  friend TracedInt operator|(TracedInt a, TracedInt b) { return TracedInt(a.v | b.v); }
  friend TracedInt operator^(TracedInt a, TracedInt b) { return TracedInt(a.v ^ b.v); }
  friend TracedInt operator<<(TracedInt a, int n) { return TracedInt(a.v << n); }
  friend TracedInt operator>>(TracedInt a, int n) { return TracedInt(a.v >> n); }
  friend TracedInt shift_right(TracedInt a, int n) {
    return TracedInt(static_cast<I>(static_cast<Unsigned>(a.v) >> n));
  }
  friend TracedMask operator<(TracedInt a, TracedInt b) { return TracedMask(a.v < b.v); }
  friend TracedInt select(TracedMask m, TracedInt a, TracedInt b) { return m.v ? a : b; }
};

template <class T>
struct Traced {
  using I = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  using Int = TracedInt<I>;
  static constexpr int kBits = 8 * sizeof(T);
  explicit Traced(T x) : v(x) {}
  T v;
  static Traced constant(double x) { return Traced(static_cast<T>(x)); }
  static Traced from_bits(Int i) { return Traced(std::bit_cast<T>(i.v)); }
  static Traced table(const double* words, Int i) { return Traced(static_cast<T>(words[i.v])); }
  friend Traced operator+(Traced a, Traced b) { return Traced(a.v + b.v); }
  friend Traced operator-(Traced a, Traced b) { return Traced(a.v - b.v); }
  friend Traced operator*(Traced a, Traced b) { return Traced(a.v * b.v); }
  friend Traced operator/(Traced a, Traced b) { return Traced(a.v / b.v); }
  friend Traced operator-(Traced a) { return Traced(-a.v); }
  friend TracedMask operator<(Traced a, Traced b) { return TracedMask(a.v < b.v); }
  friend TracedMask operator<=(Traced a, Traced b) { return TracedMask(a.v <= b.v); }
  friend TracedMask operator>(Traced a, Traced b) { return TracedMask(a.v > b.v); }
  friend TracedMask operator>=(Traced a, Traced b) { return TracedMask(a.v >= b.v); }
  friend TracedMask operator==(Traced a, Traced b) { return TracedMask(a.v == b.v); }
  friend TracedMask operator!=(Traced a, Traced b) { return TracedMask(a.v != b.v); }
  friend Traced select(TracedMask m, Traced a, Traced b) { return m.v ? a : b; }
  friend Traced fma(Traced a, Traced b, Traced c) { return Traced(std::fma(a.v, b.v, c.v)); }
  friend Traced sqrt(Traced a) { return Traced(std::sqrt(a.v)); }
  friend Traced floor(Traced a) { return Traced(std::floor(a.v)); }
  friend Traced trunc(Traced a) { return Traced(std::trunc(a.v)); }
  friend Traced round_even(Traced a) { return Traced(std::nearbyint(a.v)); }
  friend Traced abs(Traced a) { return Traced(std::abs(a.v)); }
  friend Int bits(Traced a) { return Int(std::bit_cast<I>(a.v)); }
  // Out of range happens only in lanes a select drops.
  friend Int to_int(Traced a) { return Int(std::abs(a.v) < 0x1p30 ? static_cast<I>(a.v) : 0); }
};

inline Traced<double> to_float(TracedInt<int64_t> i) {
  return Traced<double>(static_cast<double>(i.v));
}
inline Traced<float> to_float(TracedInt<int32_t> i) {
  return Traced<float>(static_cast<float>(i.v));
}
inline Traced<double> widen(Traced<float> x) { return Traced<double>(x.v); }
inline Traced<float> narrow(Traced<double> x) { return Traced<float>(static_cast<float>(x.v)); }

}  // namespace tn::math_test
