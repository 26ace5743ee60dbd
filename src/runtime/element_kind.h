#pragma once
// The element types the runtime's kernels know; a plain list, free of the compiler's type system.
#include <complex>
#include <cstddef>
#include <cstdint>

namespace tn {

enum class Element : uint8_t {
  boolean,  // one byte, 0 or 1
  i8,
  i16,
  i32,
  i64,
  u8,
  u16,
  u32,
  u64,
  f16,
  bf16,
  f32,
  f64,
  c64,
  c128,
};

constexpr size_t element_bytes(Element type) {
  constexpr uint8_t kBytes[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};
  return kBytes[static_cast<size_t>(type)];
}

struct Float16Bits {
  uint16_t bits;
};
struct BFloat16Bits {
  uint16_t bits;
};

/// Calls `f` with a value of the C++ type that stands for `type`.
template <class F>
decltype(auto) with_element(Element type, F&& f) {
  switch (type) {
    case Element::boolean:
    case Element::u8:
      return f(uint8_t{});
    case Element::i8:
      return f(int8_t{});
    case Element::i16:
      return f(int16_t{});
    case Element::i32:
      return f(int32_t{});
    case Element::i64:
      return f(int64_t{});
    case Element::u16:
      return f(uint16_t{});
    case Element::u32:
      return f(uint32_t{});
    case Element::u64:
      return f(uint64_t{});
    case Element::f16:
      return f(Float16Bits{});
    case Element::bf16:
      return f(BFloat16Bits{});
    case Element::f32:
      return f(float{});
    case Element::f64:
      return f(double{});
    case Element::c64:
      return f(std::complex<float>{});
    default:
      return f(std::complex<double>{});
  }
}

}  // namespace tn
