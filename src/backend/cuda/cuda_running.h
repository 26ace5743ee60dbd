#pragma once
// Running sums, products and extremes on GPUs.
#include <span>

#include "plan/library.h"

namespace tn::cuda {

std::span<const LibraryKernel> running_kernels();

}  // namespace tn::cuda
