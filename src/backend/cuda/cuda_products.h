#pragma once
// Products of matrices on GPUs.
#include <span>
#include <string>

#include "backend/cuda/gpu.h"
#include "ir/dtype.h"
#include "plan/library.h"

namespace tn::cuda {

/// The library kernels for products.
std::span<const LibraryKernel> product_kernels();

/// C = A·B for `batch` pairs of matrices; strides in elements. C is in row-major order.
struct MatrixProduct {
  DType type;
  int64_t m, n, k, batch = 1;
  const void* left = nullptr;
  const void* right = nullptr;
  void* out = nullptr;
  int64_t left_row = 0, left_k = 0, right_k = 0, right_column = 0;
  int64_t left_batch = 0, right_batch = 0;
  bool may_round = false;  // operands of f32, to TF32
};
/// By cuBLASLt. False where it is not there, does not take the strides, or own kernels are to be
/// preferred: nothing was done.
bool run_cublas(Gpu& gpu, Stream stream, const MatrixProduct& product);

}  // namespace tn::cuda
