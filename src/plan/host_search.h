#pragma once
// Searching in values: distinct ones, and elements that are not zero. Ops whose result sizes
// depend on values ask for it while they are recorded. Implemented by the backend of the CPU.
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/buffer.h"
#include "runtime/element_kind.h"

namespace tn {

/// The distinct elements in ascending order. NaN differs from NaN; -0 equals 0.
struct Unique {
  int64_t count = 0;
  BufferRef first;    // int64, where each value occurs first, values ascending
  BufferRef inverse;  // int64, for each input element the position of its value
  BufferRef counts;   // int64, how often each value occurs
};
Unique unique(Element type, const void* from, int64_t n);

int64_t count_nonzero(Element type, const void* from, int64_t n);

/// The indices of the elements that are not zero, in row-major order: one int64 buffer per axis.
struct Nonzero {
  int64_t count = 0;
  std::vector<BufferRef> axes;
};
Nonzero nonzero(Element type, const void* from, std::span<const int64_t> shape);

}  // namespace tn
