#pragma once
// Attention on GPUs, and its derivative.
#include <span>

#include "plan/library.h"

namespace tn::cuda {

std::span<const LibraryKernel> attention_kernels();
std::span<const LibraryKernel> attention_gradient_kernels();

}  // namespace tn::cuda
