#pragma once
// Narrow floating-point formats as bits, and their conversion from and to float. Rounding is to
// nearest even, NaN stays NaN (quiet), subnormals are exact. All functions are branch-free once
// inlined, so that loops over them vectorise; they are always inlined, so that each CPU level gets
// its own code.
#include <bit>
#include <cstdint>
#include <type_traits>

namespace tn {

/// A float of 1 sign bit, `Exponent` and `Mantissa` bits, with a bias of 2^(Exponent-1) - 1.
/// Without infinities ("fn"), the all-ones pattern alone is NaN and the top exponent holds numbers.
template <int Exponent, int Mantissa, bool Infinities>
struct NarrowFormat {
  using Bits = std::conditional_t<Exponent + Mantissa == 15, uint16_t, uint8_t>;
  static constexpr int kShift = 23 - Mantissa;
  static constexpr uint32_t kSign = 1u << (Exponent + Mantissa);
  static constexpr uint32_t kRebias = (127u - ((1u << (Exponent - 1)) - 1)) << 23;
  static constexpr uint32_t kTop = ((1u << Exponent) - 1)
                                   << Mantissa;  // infinity, where there is one
  static constexpr uint32_t kNan = Infinities ? kTop | 1u << (Mantissa - 1) : kSign - 1;
  static constexpr uint32_t kLeastNormal = kRebias + (1u << 23);  // as the bits of a float
  /// Magnitudes from here on (as the bits of a float) round beyond the largest finite number.
  static constexpr uint32_t kOverflow = ((Infinities ? kTop : kNan) << kShift) + kRebias -
                                        (1u << (kShift - 1)) + (Infinities ? 0 : 1);

  [[gnu::always_inline]] static constexpr float widen(Bits bits) {
    uint32_t magnitude = bits & (kSign - 1);
    uint32_t sign = static_cast<uint32_t>(bits & kSign) << (31 - Exponent - Mantissa);
    uint32_t normal = (magnitude << kShift) + kRebias;
    // A subnormal counts steps of the least normal number divided by 2^Mantissa.
    float step = std::bit_cast<float>(kLeastNormal - (static_cast<uint32_t>(Mantissa) << 23));
    uint32_t small =
        std::bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(magnitude)) * step);
    uint32_t special = 0x7fc00000u | magnitude << kShift;
    uint32_t result = magnitude < 1u << Mantissa ? small : normal;
    if constexpr (Infinities) {
      result = magnitude == kTop ? 0x7f800000u : result;
      result = magnitude > kTop ? special : result;
    } else {
      result = magnitude == kNan ? 0x7fc00000u : result;
    }
    return std::bit_cast<float>(sign | result);
  }

  [[gnu::always_inline]] static constexpr Bits narrow(float value) {
    uint32_t bits = std::bit_cast<uint32_t>(value);
    uint32_t magnitude = bits & 0x7fffffffu;
    uint32_t sign = (bits & 0x80000000u) >> (31 - Exponent - Mantissa);
    uint32_t odd = magnitude >> kShift & 1;
    uint32_t normal = (magnitude - kRebias + (1u << (kShift - 1)) - 1 + odd) >> kShift;
    // Added to a power of two whose last bit is one subnormal step, the sum's low bits are the
    // result.
    constexpr uint32_t kMagic = kLeastNormal + (static_cast<uint32_t>(kShift) << 23);
    float sum = std::bit_cast<float>(magnitude) + std::bit_cast<float>(kMagic);
    uint32_t small = std::bit_cast<uint32_t>(sum) - kMagic;
    uint32_t payload = Infinities ? magnitude >> kShift & ((1u << Mantissa) - 1) : 0;
    uint32_t result = magnitude < kLeastNormal ? small : normal;
    result = magnitude >= kOverflow ? (Infinities ? kTop : kNan) : result;
    result = magnitude > 0x7f800000u ? kNan | payload : result;
    return static_cast<Bits>(sign | result);
  }
};

using Float16Format = NarrowFormat<5, 10, true>;
using Float8E5M2Format = NarrowFormat<5, 2, true>;
using Float8E4M3Format = NarrowFormat<4, 3, false>;

[[gnu::always_inline]] constexpr float float16_to_float(uint16_t bits) {
  return Float16Format::widen(bits);
}
[[gnu::always_inline]] constexpr uint16_t float_to_float16(float value) {
  return Float16Format::narrow(value);
}

[[gnu::always_inline]] constexpr float bfloat16_to_float(uint16_t bits) {
  uint32_t wide = static_cast<uint32_t>(bits) << 16;
  return std::bit_cast<float>((wide & 0x7fffffffu) > 0x7f800000u ? wide | 0x00400000u : wide);
}
[[gnu::always_inline]] constexpr uint16_t float_to_bfloat16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
  uint32_t quiet = bits >> 16 | 0x0040u;
  return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

[[gnu::always_inline]] constexpr float float8_e5m2_to_float(uint8_t bits) {
  return Float8E5M2Format::widen(bits);
}
[[gnu::always_inline]] constexpr uint8_t float_to_float8_e5m2(float value) {
  return Float8E5M2Format::narrow(value);
}

/// Magnitudes that round above 448 become NaN: the format has no infinity.
[[gnu::always_inline]] constexpr uint8_t float_to_float8_e4m3fn(float value) {
  return Float8E4M3Format::narrow(value);
}
[[gnu::always_inline]] constexpr float float8_e4m3fn_to_float(uint8_t bits) {
  return Float8E4M3Format::widen(bits);
}

// Double goes through float rounded to odd, so that the two roundings make one.
[[gnu::always_inline]] constexpr float double_to_float_odd(double value) {
  float near = static_cast<float>(value);
  uint32_t bits = std::bit_cast<uint32_t>(near);
  bool exact = static_cast<double>(near) == value || value != value;
  // Towards zero when rounding went away from it; then the last bit is set to say "inexact".
  double far = near < 0 ? -static_cast<double>(near) : static_cast<double>(near);
  double magnitude = value < 0 ? -value : value;
  uint32_t odd = (bits - (far > magnitude ? 1 : 0)) | 1u;
  return std::bit_cast<float>(exact ? bits : odd);
}

}  // namespace tn
