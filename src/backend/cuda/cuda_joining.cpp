// Joining many tensors: a loop nest has a parameter and a branch for each, so that compiling it
// takes long, and drivers refuse kernels with more than some hundreds.
#include "backend/cuda/cuda_joining.h"

#include <algorithm>

#include "backend/cuda/own_kernels.h"
#include "backend/cuda/prebuilt/prebuilt.h"
#include "base/error.h"
#include "ops/op_attrs.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"

namespace tn::cuda {
namespace {

constexpr size_t kJoined = 64;

/// As in prebuilt/joining_kernels.cu.
struct OwnJoin {
  const void* x[kJoined];
  int64_t first[kJoined + 1];
  void* out;
  int64_t rows, pitch, count;
};

void run_concat(const LibraryCall& call) {
  int axis = static_cast<const ops::ConcatAttrs*>(call.attrs)->axis->i;
  const InternedType& whole = *call.out_types[0];
  if (whole.elements == 0) return;
  int64_t element = static_cast<int64_t>(size_of(whole.dtype)),
          unit = std::min<int64_t>(element, 8);
  int64_t units = element / unit;
  OwnJoin p{{}, {}, call.out[0], ops::span_of(whole.shape, 0, axis), 0, 0};
  p.pitch = ops::span_of(whole.shape, axis, whole.rank()) * units;
  std::string name = format("join_{}", 8 * unit);
  auto launch = [&] {
    int64_t width = p.first[p.count] - p.first[0];
    launch_own(joining_ptx(), name, blocks_for(p.rows * width, kOwnThreads), 0, &p);
    p.first[0] = p.first[p.count], p.count = 0;
  };
  for (size_t k = 0; k < call.in_types.size(); ++k) {
    const InternedType& x = *call.in_types[k];
    if (x.elements == 0) continue;
    p.x[p.count] = call.in[k];
    p.first[p.count + 1] = p.first[p.count] + ops::span_of(x.shape, axis, x.rank()) * units;
    if (++p.count == kJoined) launch();
  }
  if (p.count) launch();
}

bool claims_concat(Types in) { return in.size() > kJoined && !joining_ptx().empty(); }

constexpr LibraryKernel kJoining[] = {
    {.op = &ops::concat, .run = run_concat, .claims = claims_concat, .beats_loops = true}};

}  // namespace

std::span<const LibraryKernel> joining_kernels() { return kJoining; }

}  // namespace tn::cuda
