#pragma once
// Products of matrices on GPUs.
#include <span>
#include <string>

#include "backend/cuda/gpu.h"
#include "backend/cuda/product_tail.h"
#include "ir/dtype.h"
#include "plan/library.h"
#include "plan/plan.h"

namespace tn::cuda {

/// The library kernels for products.
std::span<const LibraryKernel> product_kernels();

/// C = activation(A·B + bias) for `batch` pairs of matrices; strides in elements. C is in row-major
/// order. The bias has an element for each column, and lies on 16 bytes. Axes of a batch that do
/// not lie as one are walked by the `outer` axes, the last one fastest: each place is a call.
struct MatrixProduct {
  DType type;
  int64_t m, n, k, batch = 1;
  const void* left = nullptr;
  const void* right = nullptr;
  void* out = nullptr;
  int64_t left_row = 0, left_k = 0, right_k = 0, right_column = 0;
  int64_t left_batch = 0, right_batch = 0;
  struct Outer {
    int64_t extent = 1, left = 0, right = 0;
  } outer[3] = {};
  bool may_round = false;  // operands of f32, to TF32
  Activation activation = Activation::none;
  const void* bias = nullptr;
};
/// By cuBLASLt. False where it is not there, does not take the strides, or own kernels are to be
/// preferred: nothing was done.
bool run_cublas(Gpu& gpu, Stream stream, const MatrixProduct& product);
/// Whether a call may use cuBLASLt, all calls of which share memory.
bool may_run_cublas(const LibraryStep& step, Products products);

}  // namespace tn::cuda
