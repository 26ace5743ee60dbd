// Running sums, products and extremes: one chain for each line, as the loop nest says.
#include "backend/cuda/cuda_running.h"

#include "backend/cuda/own_kernels.h"
#include "backend/cuda/prebuilt/prebuilt.h"
#include "base/error.h"
#include "ops/cumulative.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"

namespace tn::cuda {
namespace {

/// As in prebuilt/running_kernels.cu.
struct OwnRunning {
  const void* x;
  void* out;
  int64_t outer, n, inner;
  int32_t mode, reverse, exclusive, rows;
};

void run_cumulative(const LibraryCall& call) {
  const auto& a = *static_cast<const ops::CumulativeAttrs*>(call.attrs);
  const InternedType& x = *call.in_types[0];
  if (x.elements == 0) return;
  OwnRunning p{call.in[0], call.out[0], 1, 1, 1, static_cast<int32_t>(a.mode),
               a.reverse,  a.exclusive, 0};
  p.outer = ops::span_of(x.shape, 0, a.axis.i), p.n = x.shape[a.axis.i].value();
  p.inner = ops::span_of(x.shape, a.axis.i + 1, x.rank());
  std::string_view type = own_name(x.dtype);
  if (p.inner > 1)
    return launch_own(running_ptx(), format("running_columns_{}", type),
                      blocks_for(p.outer * p.inner, kOwnThreads), 0, &p);
  // Many rows share a block; few have one each, with longer pieces.
  p.rows = p.outer >= 32 * call_place.gpu->multiprocessors  ? 5
           : p.outer >= 4 * call_place.gpu->multiprocessors ? 2
                                                            : 0;
  int64_t element = static_cast<int64_t>(std::max<size_t>(size_of(x.dtype), 4));
  launch_own(running_ptx(), format("running_rows_{}", type),
             blocks_for(p.outer, int64_t{1} << p.rows), 3 * (1024 + 32) * element, &p);
}

bool claims_cumulative(Types in) {
  switch (in[0]->dtype) {
    case DType::f16:
    case DType::bf16:
    case DType::f32:
    case DType::f64:
    case DType::i32:
    case DType::i64:
      return !running_ptx().empty();
    default:
      return false;  // loops
  }
}

constexpr LibraryKernel kRunning[] = {{.op = &ops::cumulative,
                                       .run = run_cumulative,
                                       .claims = claims_cumulative,
                                       .beats_loops = true}};

}  // namespace

std::span<const LibraryKernel> running_kernels() { return kRunning; }

}  // namespace tn::cuda
