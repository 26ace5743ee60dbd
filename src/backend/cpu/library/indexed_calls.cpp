// Reading and writing at places: gather, scatter, blocks, padding, joining.
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

void run_gather(const LibraryCall& call) {
  const auto& a = *static_cast<const GatherAttrs*>(call.attrs);
  Types indices = call.in_types.subspan(1);
  const Type& x = *call.in_types[0];
  OutOfRange outside = indices_are_checked ? a.outside : when_reading(a.outside);
  ScatterPlan plan = plan_scatter(x, a.axes, a.batch_dims, index_shape("gather", indices), indices,
                                  call.in + 1, outside);
  gather_from(std::move(plan), x.dtype, call.in[0], call.out[0]);
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

/// `count` copies of one element: what is written doubles until it is enough.
void fill_with(const void* value, size_t size, size_t count, void* to) {
  auto* out = static_cast<char*>(to);
  if (count == 0) return;
  std::memcpy(out, value, size);
  for (size_t done = 1; done < count;) {
    size_t more = std::min(done, count - done);
    std::memcpy(out + done * size, out, more * size);
    done += more;
  }
}

/// The place inside an axis of `extent` for each place of the padded one.
std::vector<int64_t> inner_places(PadMode mode, int64_t before, int64_t extent, int64_t after) {
  std::vector<int64_t> places;
  int64_t period = mode == PadMode::wrap ? extent : std::max<int64_t>(2 * (extent - 1), 1);
  for (int64_t at = -before; at < extent + after; ++at) {
    int64_t place = ((at % period) + period) % period;
    if (mode == PadMode::edge) place = std::clamp<int64_t>(at, 0, extent - 1);
    if (mode == PadMode::reflect && place >= extent) place = period - place;
    places.push_back(place);
  }
  return places;
}

/// A constant is written first and x over it; the other modes read x at tabulated places.
void run_pad(const LibraryCall& call) {
  const auto& a = *static_cast<const PadWithAttrs*>(call.attrs);
  const InternedType &x = *call.in_types[0], &out = *call.out_types[0];
  auto size = static_cast<size_t>(size_of(x.dtype));
  if (out.elements == 0) return;
  if (a.mode == PadMode::constant) {
    fill_with(call.in[1], size, static_cast<size_t>(out.elements), call.out[0]);
    Block block{x.shape, {}, {}};
    for (int k = 0; k < x.rank(); ++k)
      block.start.push_back(a.pad_width[2 * k].value()), block.step.push_back(1);
    return write_block(out, block, call.in[0], call.out[0]);
  }
  ScatterPlan plan;
  plan.indexed = {0};
  plan.middle = {0};
  for (int k = 0; k < x.rank(); ++k) {
    std::vector<int64_t> next;
    int64_t stride = span_of(x.shape, k + 1, x.rank());
    std::vector<int64_t> places = inner_places(a.mode, a.pad_width[2 * k].value(),
                                               x.shape[k].value(), a.pad_width[2 * k + 1].value());
    if (k + 1 == x.rank()) {  // the places along the last axis are the same for every row
      plan.middle = places;
      break;
    }
    for (int64_t row : plan.indexed)
      for (int64_t place : places) next.push_back(row + place * stride);
    plan.indexed = std::move(next);
  }
  gather_from(std::move(plan), x.dtype, call.in[0], call.out[0]);
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

// All but scatter have a loop nest too, which other devices run. Compiled plans fuse those of
// gather and pad_with. The kernels stay for interpreted plans: nests with masks take 6 to 36 times
// as long there, because masks are computed element by element (docs/design/003). Moreover, a nest
// cannot fail: only the kernel of gather reports an index out of bounds.
constexpr LibraryKernel kEntriesIndexing[] = {
    {&ops::gather, run_gather},
    {&ops::scatter, run_scatter},
    {.op = &ops::slice_update, .run = run_slice_update, .beats_loops = true},
    {.op = &ops::dynamic_update_slice, .run = run_dynamic_update, .beats_loops = true},
    {&ops::pad_with, run_pad},
    {.op = &ops::concat, .run = run_concat, .beats_loops = true},
};

}  // namespace

LibraryTable indexing_kernels() { return kEntriesIndexing; }

}  // namespace tn::cpu
