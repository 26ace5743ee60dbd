#pragma once
// Scatters on GPUs.
#include <span>

#include "plan/library.h"

namespace tn::cuda {

std::span<const LibraryKernel> scatter_kernels();

}  // namespace tn::cuda
