#pragma once
// One product of floats, cut into blocks that fit the caches and dealt out to the threads.
#include <cstdint>

#include "backend/cpu/kernels/gemm_kernels.h"
#include "base/function_ref.h"
#include "runtime/native.h"

namespace tn {

inline constexpr int64_t kChunkWork = 1 << 17;  // multiply-adds worth a chunk
inline constexpr int64_t kMultiplyRate = 50;    // multiply-adds of a thread in a nanosecond, about

/// One product in the terms of the kernels.
template <class T>
struct Product {
  const GemmKernels<T>& kernels;
  int64_t m, n, k;
  GemmOperand a, b;
  T* c;
  int64_t c_row;
  const T* packed_b = nullptr;  // as pack_right leaves it
  // A product of the first k and n of a longer one: the lengths that decide K blocks and the order
  // of packed_b. 0: k and n.
  int64_t whole_k = 0, whole_n = 0;
  // Where A and B are packed: PackedSizes elements, aligned to 64. Null: allocated.
  T* left_room = nullptr;
  T* right_room = nullptr;
  int64_t right_size = 0;  // of right_room
  /// Blocks of C that are finished, each element once; the batch is left 0. May be null.
  const FunctionRef<void(const KernelTile&)>* finish = nullptr;
};

template <class T>
void multiply(const Product<T>& product);

/// Elements of both operands that `multiply` packs at a time.
struct PackedSizes {
  int64_t left = 0, right = 0;
};
template <class T>
PackedSizes packed_sizes(const Product<T>& product);

/// Elements that pack_right writes.
template <class T>
int64_t packed_size(const Product<T>& product);

/// All of B, K block after K block, each as panels of the kernels' columns.
template <class T>
void pack_right(const Product<T>& product, T* out);

/// The inverse for elements that are packed as they are: writes B by its strides.
template <class T>
void unpack_right(const Product<T>& product, const T* packed, T* b);

}  // namespace tn
