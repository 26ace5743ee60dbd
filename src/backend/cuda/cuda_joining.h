#pragma once
// Joining many tensors on GPUs.
#include <span>

#include "plan/library.h"

namespace tn::cuda {

std::span<const LibraryKernel> joining_kernels();

}  // namespace tn::cuda
