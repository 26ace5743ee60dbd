#pragma once
// Kernels of immediate evaluation: interpreted at once, and compiled in the background if they run
// often.
#include "backend/cuda/cuda_kernel.h"

namespace tn::cuda {

/// Null: the kernel has no program, or the interpreter itself is not assembled yet, which happens
/// in the background.
std::shared_ptr<const tn::KernelCode> interpreted_code(const KernelRequest& request,
                                                       const Target& target);

/// After how many runs a kernel with so much work (instructions times elements) is compiled.
constexpr int64_t runs_until_compiled(int64_t work) {
  constexpr int64_t kLarge = 1 << 20;
  return work >= kLarge ? 2 : 10;
}

}  // namespace tn::cuda
