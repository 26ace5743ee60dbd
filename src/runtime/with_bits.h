#pragma once
// Elements that are moved and not computed with: their size is all that matters.
#include <cstdint>

namespace tn {

struct Bits128 {
  uint64_t half[2];
};

/// Calls `f` with a value of an integer type as large as the element.
template <class F>
auto with_bits(int64_t bytes, F&& f) {
  switch (bytes) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    case 8:
      return f(uint64_t{});
    default:
      return f(Bits128{});
  }
}

}  // namespace tn
