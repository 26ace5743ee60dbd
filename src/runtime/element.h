#pragma once
// The element types the runtime's kernels know; a plain list, free of the compiler's type system.
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

}  // namespace tn
