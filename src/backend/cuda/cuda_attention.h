#pragma once
// Attention on GPUs.
#include <span>

#include "plan/library.h"

namespace tn::cuda {

std::span<const LibraryKernel> attention_kernels();

}  // namespace tn::cuda
