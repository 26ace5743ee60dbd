#pragma once
// Matrix products of every element type.
#include <cstdint>

#include "runtime/cpu_level.h"
#include "runtime/element.h"

namespace tn {

/// C = A·B for `batch` pairs of an m×k and a k×n matrix. Strides count elements and may be zero or
/// negative; C is contiguous, batch after batch, and written whole.
///
/// Each element of C is a chain of fused multiply-adds with ascending k, restarted at K blocks that
/// depend on k alone, so the bits depend on the values and k only: not on strides, threads or
/// level. f16 and bf16 are multiplied and summed in f32 and rounded once; integers wrap; booleans
/// are or-and.
struct GemmArgs {
  Element type = Element::f32;
  int64_t m = 0, n = 0, k = 0;
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  int64_t a_row = 0, a_col = 0;
  int64_t b_row = 0, b_col = 0;
  int64_t batch = 1;
  /// Batch i of A begins at a_offsets[i] when given, else at i * a_batch (elements); so for B.
  int64_t a_batch = 0, b_batch = 0;
  const int64_t* a_offsets = nullptr;
  const int64_t* b_offsets = nullptr;
};

void gemm(const GemmArgs& args);

/// The same with the kernels of one level, which the machine must support.
void gemm_at(CpuLevel level, const GemmArgs& args);

}  // namespace tn
