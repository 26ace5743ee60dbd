#pragma once
// Copies of arrays that lie in any order.
#include <cstdint>
#include <span>

namespace tn {

/// Copies the elements of an array with the given extents and strides (in elements) to row-major
/// order. On all threads; squares of the two fastest axes are turned in L1.
void copy_strided(int64_t element_bytes, std::span<const int64_t> extents,
                  std::span<const int64_t> strides, const void* from, void* to);

}  // namespace tn
