// Executing a program: tiles over threads, sweeps over blocks, steps over elements.
#include <algorithm>
#include <cstring>

#include "loop/interpreter_frame.h"
#include "loop/interpreter_walk.h"
#include "runtime/threads.h"

namespace tn::loop::machine {
namespace {

const uint8_t* mask_of(const Frame& frame, const Step& step) {
  return step.mask == kNone ? nullptr : static_cast<const uint8_t*>(frame.slots[step.mask]);
}

void run_load(const Frame& frame, const Step& step, const Block& block) {
  const Program& p = *frame.program;
  const Access& access = p.accesses[static_cast<size_t>(step.access)];
  std::byte* buffer = static_cast<std::byte*>(frame.buffers[access.buffer]);
  const uint8_t* mask = mask_of(frame, step);
  if (mask) {
    MaskState state = state_of(mask, block.size());
    if (state == MaskState::none) {
      frame.slots[step.dst] = frame.slots[step.home];
      std::memset(frame.slots[step.dst], 0, static_cast<size_t>(block.size() * access.size));
      return;
    }
    if (state == MaskState::all) mask = nullptr;
  }
  int64_t offset = mask ? -1 : contiguous_offset(p, access, block);
  if (offset >= 0) {
    frame.slots[step.dst] = buffer + offset * access.size;
    return;
  }
  frame.slots[step.dst] = frame.slots[step.home];
  fill(p, access, block, buffer, mask, frame.slots[step.dst]);
}

void run_store(const Frame& frame, const Step& step, const Block& block) {
  const Program& p = *frame.program;
  const Access& access = p.accesses[static_cast<size_t>(step.access)];
  std::byte* buffer = static_cast<std::byte*>(frame.buffers[access.buffer]);
  const void* src = frame.slots[step.a];
  const uint8_t* mask = mask_of(frame, step);
  int64_t offset = mask ? -1 : contiguous_offset(p, access, block);
  if (offset < 0) return spill(p, access, block, buffer, mask, src);
  std::byte* dst = buffer + offset * access.size;
  if (dst != src) std::memmove(dst, src, static_cast<size_t>(block.size() * access.size));
}

void run_aim(const Frame& frame, const Step& step, const Block& block) {
  const Access& access = frame.program->accesses[static_cast<size_t>(step.access)];
  int64_t offset = contiguous_offset(*frame.program, access, block);
  frame.slots[step.dst] =
      offset < 0 ? frame.slots[step.home]
                 : static_cast<std::byte*>(frame.buffers[access.buffer]) + offset * access.size;
}

void run_gather(const Frame& frame, const Step& step, const Block& block) {
  const Access& access = frame.program->accesses[static_cast<size_t>(step.access)];
  gather(access.size, frame.buffers[access.buffer],
         static_cast<const int64_t*>(frame.slots[step.a]), mask_of(frame, step),
         frame.slots[step.dst], block.size());
}

void run_scatter(const Frame& frame, const Step& step, const Block& block) {
  const Program& p = *frame.program;
  const Access& access = p.accesses[static_cast<size_t>(step.access)];
  const int64_t* offsets = static_cast<const int64_t*>(frame.slots[step.a]);
  void* buffer = frame.buffers[access.buffer];
  const void* src = frame.slots[step.b];
  if (step.scatter)
    step.scatter(buffer, offsets, src, mask_of(frame, step), block.size());
  else
    scatter_set(access.size, buffer, offsets, mask_of(frame, step), src, block.size());
}

void run_argument(const Frame& frame, const Step& step) {
  std::array<std::byte, 8> bits = element_bits(frame.arguments[step.a], step.type);
  std::memcpy(frame.slots[step.dst], bits.data(), 8);
}

// `block` is the largest of the tile, so that the copies serve all of its blocks.
void run_expand(const Frame& frame, const Step& step, const Block& block) {
  std::byte* dst = static_cast<std::byte*>(frame.slots[step.dst]);
  const std::byte* src = static_cast<const std::byte*>(frame.slots[step.a]);
  if (frame.program->mode == Mode::rows) {
    int64_t size = step.size;
    for (int64_t r = 0; r < block.outers; ++r)
      splat(step.size, dst + r * block.inners * size, src + r * size, block.inners);
    return;
  }
  size_t bytes = static_cast<size_t>(block.inners * step.size);
  for (int64_t r = 0; r < block.outers; ++r)
    std::memcpy(dst + static_cast<size_t>(r) * bytes, src, bytes);
}

void run_steps(const Frame& frame, Range range, const Block& block) {
  const Program& p = *frame.program;
  int64_t n = block.size();
  void** slots = frame.slots;
  for (int32_t i = range.first; i < range.last; ++i) {
    const Step& step = p.steps[static_cast<size_t>(i)];
    switch (step.kind) {
      case StepKind::compute:
        step.fn(slots[step.dst], slots[step.a], slots[step.b], slots[step.c], n);
        break;
      case StepKind::load:
        run_load(frame, step, block);
        break;
      case StepKind::store:
        run_store(frame, step, block);
        break;
      case StepKind::aim:
        run_aim(frame, step, block);
        break;
      case StepKind::gather:
        run_gather(frame, step, block);
        break;
      case StepKind::scatter:
        run_scatter(frame, step, block);
        break;
      case StepKind::iota:
        count(p, p.accesses[static_cast<size_t>(step.access)], block,
              static_cast<int64_t*>(slots[step.dst]));
        break;
      case StepKind::argument:
        run_argument(frame, step);
        break;
      case StepKind::splat:
        splat(step.size, slots[step.dst], slots[step.a], p.tile * p.step);
        break;
      case StepKind::expand:
        run_expand(frame, step, block);
        break;
      case StepKind::reduce:
        accumulate(frame, step, block);
        break;
      case StepKind::scan:
        scan(frame, step, block);
        break;
    }
  }
}

Block block_at(const Program& p, int64_t first, int64_t count, int64_t red, int64_t reds) {
  if (p.mode == Mode::flat) return {0, 1, first, count};
  if (p.mode == Mode::rows) return {first, count, red, reds};
  return {red, reds, first, count};
}

/// Of one of `tasks` that share the work: a step takes about this long for an element.
int64_t nanoseconds_of(const Program& p, int64_t tasks) {
  double elements =
      static_cast<double>(p.points) * static_cast<double>(std::max(p.extent, int64_t{1}));
  return static_cast<int64_t>(0.15 * elements * static_cast<double>(p.steps.size()) /
                              static_cast<double>(tasks));
}

/// The blocks of red points [begin, end) of a tile.
void run_blocks(const Frame& frame, const Segment& segment, int64_t first, int64_t count,
                int64_t begin, int64_t end) {
  const Program& p = *frame.program;
  int64_t blocks = (end - begin + p.step - 1) / p.step;
  for (int64_t k = 0; k < blocks; ++k) {
    int64_t red = begin + (segment.reverse ? blocks - 1 - k : k) * p.step;
    int64_t reds = std::min(p.step, end - red);
    run_steps(frame, segment.body, block_at(p, first, count, red, reds));
  }
}

// Chunks in parallel: each has its own frame and leaves its results in a record.
void sweep_chunks(const Frame& frame, const Segment& segment, int64_t first, int64_t count) {
  const Program& p = *frame.program;
  int64_t chunks = chunks_for(p.extent, kChunk);
  int64_t tasks = std::min(chunks, p.tasks);
  Scratch records(segment.reducers.size() > 0 ? chunks * p.partial_size : 0);
  parallel_for(tasks, nanoseconds_of(p, tasks), [&](int64_t task) {
    FrameScope scope(p, frame.buffers, frame.arguments);
    const Frame& own = scope.frame;
    for (int32_t slot : segment.imports) own.slots[slot] = frame.slots[slot];
    ChunkRange range = chunk_range(chunks, tasks, task);
    for (int64_t chunk = range.begin; chunk < range.end; ++chunk) {
      begin_chunk(own, segment, count);
      int64_t begin = chunk * kChunk;
      run_blocks(own, segment, first, count, begin, std::min(begin + kChunk, p.extent));
      end_chunk(own, segment, count, records.data + chunk * p.partial_size);
    }
  });
  for (int64_t chunk = 0; chunk < chunks; ++chunk)
    add_partial(frame, segment, count, chunk, records.data + chunk * p.partial_size);
}

void sweep(const Frame& frame, const Segment& segment, int64_t first, int64_t count) {
  const Program& p = *frame.program;
  if (p.extent == 0) return set_empty(frame, segment, count);
  if (segment.prologue.size() > 0) {
    Block widest = block_at(p, first, count, 0, std::min(p.step, p.extent));
    run_steps(frame, segment.prologue, widest);
  }
  if (p.kept && p.mode != Mode::columns) {
    begin_scans(frame, segment, count);
    run_steps(frame, segment.body, block_at(p, first, count, 0, p.extent));
    return;
  }
  begin_scans(frame, segment, count);
  begin_total(frame, segment, count);
  if (p.sweep_in_parallel) {
    sweep_chunks(frame, segment, first, count);
  } else if (segment.reducers.size() == 0 || segment.has_scan) {
    run_blocks(frame, segment, first, count, 0, p.extent);
  } else {
    std::byte* record = frame.base + p.frame_size;
    for (int64_t begin = 0, chunk = 0; begin < p.extent; begin += kChunk, ++chunk) {
      begin_chunk(frame, segment, count);
      run_blocks(frame, segment, first, count, begin, std::min(begin + kChunk, p.extent));
      end_chunk(frame, segment, count, record);
      add_partial(frame, segment, count, chunk, record);
    }
  }
  end_total(frame, segment, count);
}

void run_tiles(const Frame& frame, int64_t begin, int64_t end) {
  const Program& p = *frame.program;
  run_steps(frame, p.segments[0].body, Block{});
  if (p.mode == Mode::flat) {
    if (p.segments.size() < 2) return;
    Range body = p.segments[1].body;
    for (int64_t tile = begin; tile < end; ++tile) {
      int64_t first = tile * p.tile;
      run_steps(frame, body, {0, 1, first, std::min(p.tile, p.points - first)});
    }
    return;
  }
  for (int64_t tile = begin; tile < end; ++tile) {
    int64_t first = tile * p.tile, count = std::min(p.tile, p.points - first);
    for (size_t s = 1; s < p.segments.size(); ++s) {
      const Segment& segment = p.segments[s];
      if (segment.domain == Domain::row)
        run_steps(frame, segment.body, {0, 1, first, count});
      else
        sweep(frame, segment, first, count);
    }
  }
}

}  // namespace

}  // namespace tn::loop::machine

namespace tn::loop {

void run(const Program& program, void* const* buffers, const Scalar* arguments) {
  using namespace machine;
  if (program.whole) return run_whole(*program.whole, buffers, arguments);
  if (program.tiles == 0) return;
  if (program.tasks == 1 || program.sweep_in_parallel) {
    FrameScope scope(program, buffers, arguments);
    return run_tiles(scope.frame, 0, program.tiles);
  }
  parallel_for(program.tasks, nanoseconds_of(program, program.tasks), [&](int64_t task) {
    FrameScope scope(program, buffers, arguments);
    ChunkRange range = chunk_range(program.tiles, program.tasks, task);
    run_tiles(scope.frame, range.begin, range.end);
  });
}

}  // namespace tn::loop
