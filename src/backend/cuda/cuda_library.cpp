#include "backend/cuda/cuda_library.h"

#include "backend/cuda/cuda_attention.h"
#include "backend/cuda/cuda_convolutions.h"
#include "backend/cuda/cuda_joining.h"
#include "backend/cuda/cuda_products.h"
#include "backend/cuda/cuda_running.h"
#include "backend/cuda/cuda_scatter.h"
#include "backend/cuda/cuda_sorts.h"
#include "backend/cuda/cuda_windows.h"

namespace tn::cuda {

constinit thread_local CallPlace call_place;

const LibraryKernel* library_kernel(const OpDef& op, Types in, const Target& target) {
  if (target.arch < kPrebuiltArch) return nullptr;  // the host computes what is no loop nest
  for (std::span<const LibraryKernel> table :
       {attention_kernels(), conv_kernels(), joining_kernels(), product_kernels(),
        running_kernels(), scatter_kernels(), sort_kernels(), window_kernels()})
    for (const LibraryKernel& kernel : table)
      if (kernel.op == &op && (!kernel.claims || kernel.claims(in))) return &kernel;
  return nullptr;
}

}  // namespace tn::cuda
