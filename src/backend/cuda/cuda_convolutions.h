#pragma once
// Convolutions on GPUs.
#include <span>

#include "plan/library.h"

namespace tn::cuda {

std::span<const LibraryKernel> conv_kernels();

}  // namespace tn::cuda
