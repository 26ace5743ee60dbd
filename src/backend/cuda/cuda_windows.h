#pragma once
// Windows on GPUs.
#include <span>

#include "plan/library.h"

namespace tn::cuda {

std::span<const LibraryKernel> window_kernels();

}  // namespace tn::cuda
