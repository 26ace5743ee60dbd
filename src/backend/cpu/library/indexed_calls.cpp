// Writing at places: scatter, blocks, joining; and the check of indices.
#include <algorithm>
#include <cstring>

#include "backend/cpu/library/cpu_library.h"
#include "backend/cpu/library/places.h"
#include "ops/index_bounds.h"
#include "ops/indexing.h"
#include "ops/op_attrs.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "ops/slice_attrs.h"
#include "runtime/threads.h"

namespace tn::cpu {
namespace {

using namespace ops;

/// Reports an index out of bounds, which a loop nest cannot.
void check_gather(const LibraryCall& call) {
  const auto& a = *static_cast<const GatherAttrs*>(call.attrs);
  Types indices = call.in_types.subspan(1);
  if (indices_are_checked && is_checked(a.outside))
    check_indices(*call.in_types[0], a.axes, a.batch_dims, index_shape("gather", indices), indices,
                  call.in + 1);
}

void run_scatter(const LibraryCall& call) {
  const auto& a = *static_cast<const ScatterAttrs*>(call.attrs);
  const InternedType& x = *call.in_types[0];
  if (x.elements) std::memcpy(call.out[0], call.in[0], static_cast<size_t>(x.bytes()));
  Types indices = call.in_types.subspan(2);
  OutOfRange outside = indices_are_checked ? a.outside : when_writing(a.outside);
  ScatterPlan plan = plan_scatter(x, a.axes, a.batch_dims, index_shape("scatter", indices), indices,
                                  call.in + 2, outside);
  scatter_into(plan, x.dtype, a.mode, call.in[1], call.out[0]);
}

void run_slice_update(const LibraryCall& call) {
  const auto& a = *static_cast<const SliceAttrs*>(call.attrs);
  const InternedType &x = *call.in_types[0], &update = *call.in_types[1];
  if (x.elements) std::memcpy(call.out[0], call.in[0], static_cast<size_t>(x.bytes()));
  Block block{update.shape, {}, {}};
  for (int k = 0; k < x.rank(); ++k) block.start.push_back(0), block.step.push_back(1);
  for (int i = 0; i < a.axis->size(); ++i)
    block.start[(*a.axis)[i].i] = a.start[i].value(), block.step[(*a.axis)[i].i] = (*a.step)[i];
  write_block(x, block, call.in[1], call.out[0]);
}

void run_dynamic_update(const LibraryCall& call) {
  const InternedType &x = *call.in_types[0], &update = *call.in_types[1];
  if (x.elements) std::memcpy(call.out[0], call.in[0], static_cast<size_t>(x.bytes()));
  Block block{update.shape, {}, {}};
  for (int k = 0; k < x.rank(); ++k) {
    int64_t last = x.shape[k].value() - update.shape[k].value();
    int64_t start = *static_cast<const int64_t*>(call.in[2 + k]);
    block.start.push_back(std::clamp<int64_t>(start, 0, last)), block.step.push_back(1);
  }
  write_block(x, block, call.in[1], call.out[0]);
}

/// Copies block after block; every operand gives one block per point of the axes before `axis`.
void run_concat(const LibraryCall& call) {
  constexpr int64_t kBytesPerChunk = 1 << 18;
  int axis = static_cast<const ConcatAttrs*>(call.attrs)->axis->i;
  const InternedType& out = *call.out_types[0];
  if (out.elements == 0) return;
  int64_t outer = span_of(out.shape, 0, axis), row = out.bytes() / outer;
  size_t count = call.in_types.size();
  std::vector<int64_t> blocks(count), places(count);
  for (size_t i = 0; i < count; ++i) {
    blocks[i] = call.in_types[i]->bytes() / outer;
    places[i] = i ? places[i - 1] + blocks[i - 1] : 0;
  }
  int64_t tasks = outer * static_cast<int64_t>(count);
  int64_t chunks = std::min(tasks, chunks_for(out.bytes(), kBytesPerChunk));
  parallel_for(chunks, [&](int64_t chunk) {
    ChunkRange range = chunk_range(tasks, chunks, chunk);
    for (int64_t task = range.begin; task < range.end; ++task) {
      auto i = static_cast<size_t>(task % static_cast<int64_t>(count));
      int64_t o = task / static_cast<int64_t>(count);
      if (blocks[i] == 0) continue;
      std::memcpy(static_cast<char*>(call.out[0]) + o * row + places[i],
                  static_cast<const char*>(call.in[i]) + o * blocks[i],
                  static_cast<size_t>(blocks[i]));
    }
  });
}

// All but scatter have a loop nest too, which other devices run. That of gather runs here as well;
// those of the others are slower, interpreted or compiled (docs/design/003).
constexpr LibraryKernel kEntriesIndexing[] = {
    {.op = &ops::gather, .run = check_gather, .only_checks = true},
    {&ops::scatter, run_scatter},
    {.op = &ops::slice_update, .run = run_slice_update, .beats_loops = true},
    {.op = &ops::dynamic_update_slice, .run = run_dynamic_update, .beats_loops = true},
    {.op = &ops::concat, .run = run_concat, .beats_loops = true},
};

}  // namespace

LibraryTable indexing_kernels() { return kEntriesIndexing; }

}  // namespace tn::cpu
