#pragma once
// Sorts on GPUs.
#include <span>

#include "plan/library.h"

namespace tn::cuda {

std::span<const LibraryKernel> sort_kernels();

/// A sort of pairs, a key and the place of the element in its row: prebuilt/sort_kernels.cu.
struct PairSort {
  const void* x = nullptr;
  void* values = nullptr;     // the elements in order; null: not wanted
  int64_t* places = nullptr;  // where they were; null: not wanted
  void* pairs[2] = {};
  int64_t rows = 1, n = 0, inner = 1;
  int64_t keep = 0;  // of each row, the first ones
  int64_t run = 0;
  uint64_t infinity = 0;
  int32_t bytes = 4, kind = 0;
  int32_t descending = 0, padded = 0, is_last = 0;

  /// Whether keys and places have 64 bits.
  bool is_wide() const { return bytes > 4 || n > UINT32_MAX - 1; }
  int64_t pair_bytes() const { return is_wide() ? 16 : 8; }
};
/// Bytes that sort_pairs needs; `wants_pairs`: results are pairs.
int64_t sort_room(const PairSort& sort, bool wants_pairs);
/// Sorts each row. Where pairs are wanted, returns where they lie, rows one behind the other.
void* sort_pairs(PairSort sort, void* room, bool wants_pairs);

}  // namespace tn::cuda
