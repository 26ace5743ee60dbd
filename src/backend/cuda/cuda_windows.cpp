// Windows added where they came from, in the order of the CPU.
#include "backend/cuda/cuda_windows.h"

#include <algorithm>

#include "backend/cuda/own_kernels.h"
#include "backend/cuda/prebuilt/prebuilt.h"
#include "base/error.h"
#include "ops/op_decls.h"
#include "ops/spatial.h"

namespace tn::cuda {
namespace {

constexpr int kFoldAxes = ops::kMostAxes;

/// As in prebuilt/window_kernels.cu.
struct OwnFold {
  const void* windows;
  void* out;
  int64_t count;
  int64_t places[kFoldAxes], size[kFoldAxes], extent[kFoldAxes], step[kFoldAxes], apart[kFoldAxes];
};

/// Sums of integers wrap, so the sign does not matter.
std::string fold_name(DType type) {
  return is_inexact(type) ? format("fold_{}", own_name(type))
                          : format("fold_b{}", 8 * size_of(type));
}

void run_fold(const LibraryCall& call) {
  ops::FoldPlan plan(*static_cast<const ops::FoldAttrs*>(call.attrs), call.in_types[0]->shape);
  OwnFold p{call.in[0], call.out[0], call.out_types[0]->elements, {}, {}, {}, {}, {}};
  std::copy_n(plan.places, kFoldAxes, p.places), std::copy_n(plan.size, kFoldAxes, p.size);
  std::copy_n(plan.extent, kFoldAxes, p.extent), std::copy_n(plan.step, kFoldAxes, p.step);
  std::copy_n(plan.apart, kFoldAxes, p.apart);
  launch_own(window_ptx(), fold_name(call.in_types[0]->dtype), blocks_for(p.count, kOwnThreads), 0,
             &p);
}

bool claims_fold(Types in) { return !window_ptx().empty() && !own_name(in[0]->dtype).empty(); }

constexpr LibraryKernel kWindows[] = {{&ops::window_fold, run_fold, claims_fold}};

}  // namespace

std::span<const LibraryKernel> window_kernels() { return kWindows; }

}  // namespace tn::cuda
