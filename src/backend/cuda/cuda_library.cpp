#include "backend/cuda/cuda_library.h"

#include "backend/cuda/cuda_products.h"

namespace tn::cuda {

constinit thread_local CallPlace call_place;

const LibraryKernel* library_kernel(const OpDef& op, Types in, const Target& target) {
  if (target.arch == 0) return nullptr;  // its kernels run on the host
  for (const LibraryKernel& kernel : product_kernels())
    if (kernel.op == &op && (!kernel.claims || kernel.claims(in))) return &kernel;
  return nullptr;
}

}  // namespace tn::cuda
