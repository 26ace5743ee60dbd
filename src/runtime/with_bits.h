#pragma once
// Elements that are moved and not computed with: their size is all that matters.
#include <cstdint>

namespace tn {

struct Bits128 {
  uint64_t half[2];
};

/// Calls `f` with a value of an integer type as large as an element of at most 8 bytes.
template <class F>
auto with_word(int64_t bytes, F&& f) {
  switch (bytes) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    default:
      return f(uint64_t{});
  }
}

/// The same for elements of up to 16 bytes.
template <class F>
auto with_bits(int64_t bytes, F&& f) {
  return bytes > 8 ? f(Bits128{}) : with_word(bytes, f);
}

}  // namespace tn
