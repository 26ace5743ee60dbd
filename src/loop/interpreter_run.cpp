// Executing a program: tiles over threads, sweeps over blocks, instructions over elements.
#include <algorithm>
#include <cstring>

#include "loop/interpreter_frame.h"
#include "loop/interpreter_walk.h"
#include "runtime/threads.h"

namespace tn::loop::machine {
namespace {

const uint8_t* mask_of(const Frame& frame, const Instruction& instruction) {
  return instruction.mask == kNone ? nullptr
                                   : static_cast<const uint8_t*>(frame.slots[instruction.mask]);
}

/// `moved`: by so many elements.
void run_load(const Frame& frame, const Instruction& instruction, const Block& block,
              int64_t moved = 0) {
  const BlockProgram& p = *frame.program;
  const Access& access = p.accesses[static_cast<size_t>(instruction.access)];
  std::byte* buffer = static_cast<std::byte*>(frame.buffers[access.buffer]) + moved * access.size;
  const uint8_t* mask = mask_of(frame, instruction);
  if (mask) {
    MaskState state = state_of(mask, block.size());
    if (state == MaskState::none) {
      frame.slots[instruction.dst] = frame.slots[instruction.home];
      std::memset(frame.slots[instruction.dst], 0, static_cast<size_t>(block.size() * access.size));
      return;
    }
    if (state == MaskState::all) mask = nullptr;
  }
  int64_t offset = mask ? -1 : contiguous_offset(p, access, block);
  if (offset >= 0) {
    frame.slots[instruction.dst] = buffer + offset * access.size;
    return;
  }
  frame.slots[instruction.dst] = frame.slots[instruction.home];
  fill(p, access, block, buffer, mask, frame.slots[instruction.dst]);
}

void run_load_at(const Frame& frame, const Instruction& instruction, const Block& block) {
  const BlockProgram& p = *frame.program;
  const int64_t* offsets = static_cast<const int64_t*>(frame.slots[instruction.a]);
  const Access& access = p.accesses[static_cast<size_t>(instruction.access)];
  auto* keeps =
      instruction.drops ? static_cast<const uint8_t*>(frame.slots[instruction.b]) : nullptr;
  bool one = !instruction.by_row || (p.mode == Mode::rows && block.outers == 1);
  if (one && (!keeps || keeps[0])) return run_load(frame, instruction, block, offsets[0]);
  frame.slots[instruction.dst] = frame.slots[instruction.home];
  if (p.mode == Mode::columns)
    return fill_columns(p, access, block, frame.buffers[access.buffer], offsets,
                        mask_of(frame, instruction), frame.slots[instruction.dst]);
  fill_rows(p, access, block, frame.buffers[access.buffer], offsets, mask_of(frame, instruction),
            frame.slots[instruction.dst]);
  auto* rows = static_cast<std::byte*>(frame.slots[instruction.dst]);
  auto bytes = static_cast<size_t>(block.inners * access.size);
  for (int64_t r = 0; keeps && r < block.outers; ++r)
    if (!keeps[r]) std::memset(rows + static_cast<size_t>(r) * bytes, 0, bytes);
}

void run_store(const Frame& frame, const Instruction& instruction, const Block& block) {
  const BlockProgram& p = *frame.program;
  const Access& access = p.accesses[static_cast<size_t>(instruction.access)];
  std::byte* buffer = static_cast<std::byte*>(frame.buffers[access.buffer]);
  const void* src = frame.slots[instruction.a];
  const uint8_t* mask = mask_of(frame, instruction);
  int64_t offset = mask ? -1 : contiguous_offset(p, access, block);
  if (offset < 0) return spill(p, access, block, buffer, mask, src);
  std::byte* dst = buffer + offset * access.size;
  if (dst != src) std::memmove(dst, src, static_cast<size_t>(block.size() * access.size));
}

void run_aim(const Frame& frame, const Instruction& instruction, const Block& block) {
  const Access& access = frame.program->accesses[static_cast<size_t>(instruction.access)];
  int64_t offset = contiguous_offset(*frame.program, access, block);
  frame.slots[instruction.dst] =
      offset < 0 ? frame.slots[instruction.home]
                 : static_cast<std::byte*>(frame.buffers[access.buffer]) + offset * access.size;
}

void run_gather(const Frame& frame, const Instruction& instruction, const Block& block) {
  const Access& access = frame.program->accesses[static_cast<size_t>(instruction.access)];
  gather(access.size, frame.buffers[access.buffer],
         static_cast<const int64_t*>(frame.slots[instruction.a]), mask_of(frame, instruction),
         frame.slots[instruction.dst], block.size());
}

void run_scatter(const Frame& frame, const Instruction& instruction, const Block& block) {
  const BlockProgram& p = *frame.program;
  const Access& access = p.accesses[static_cast<size_t>(instruction.access)];
  const int64_t* offsets = static_cast<const int64_t*>(frame.slots[instruction.a]);
  void* buffer = frame.buffers[access.buffer];
  const void* src = frame.slots[instruction.b];
  if (instruction.scatter)
    instruction.scatter(buffer, offsets, src, mask_of(frame, instruction), block.size());
  else
    scatter_set(access.size, buffer, offsets, mask_of(frame, instruction), src, block.size());
}

void run_argument(const Frame& frame, const Instruction& instruction) {
  std::array<std::byte, 8> bits = element_bits(frame.arguments[instruction.a], instruction.type);
  std::memcpy(frame.slots[instruction.dst], bits.data(), 8);
}

// `block` is the largest of the tile, so that the copies serve all of its blocks.
void run_expand(const Frame& frame, const Instruction& instruction, const Block& block) {
  std::byte* dst = static_cast<std::byte*>(frame.slots[instruction.dst]);
  const std::byte* src = static_cast<const std::byte*>(frame.slots[instruction.a]);
  if (frame.program->mode == Mode::rows) {
    int64_t size = instruction.size;
    for (int64_t r = 0; r < block.outers; ++r)
      splat(instruction.size, dst + r * block.inners * size, src + r * size, block.inners);
    return;
  }
  size_t bytes = static_cast<size_t>(block.inners * instruction.size);
  for (int64_t r = 0; r < block.outers; ++r)
    std::memcpy(dst + static_cast<size_t>(r) * bytes, src, bytes);
}

void run_instructions(const Frame& frame, Range range, const Block& block) {
  const BlockProgram& p = *frame.program;
  int64_t n = block.size();
  void** slots = frame.slots;
  for (int32_t i = range.first; i < range.last; ++i) {
    const Instruction& instruction = p.instructions[static_cast<size_t>(i)];
    switch (instruction.kind) {
      case InstructionKind::compute:
        instruction.fn(slots[instruction.dst], slots[instruction.a], slots[instruction.b],
                       slots[instruction.c], n);
        break;
      case InstructionKind::load:
        run_load(frame, instruction, block);
        break;
      case InstructionKind::load_at:
        run_load_at(frame, instruction, block);
        break;
      case InstructionKind::store:
        run_store(frame, instruction, block);
        break;
      case InstructionKind::aim:
        run_aim(frame, instruction, block);
        break;
      case InstructionKind::gather:
        run_gather(frame, instruction, block);
        break;
      case InstructionKind::scatter:
        run_scatter(frame, instruction, block);
        break;
      case InstructionKind::iota:
        count(p, p.accesses[static_cast<size_t>(instruction.access)], block,
              static_cast<int64_t*>(slots[instruction.dst]));
        break;
      case InstructionKind::argument:
        run_argument(frame, instruction);
        break;
      case InstructionKind::splat:
        splat(instruction.size, slots[instruction.dst], slots[instruction.a], p.tile * p.step);
        break;
      case InstructionKind::expand:
        run_expand(frame, instruction, block);
        break;
      case InstructionKind::reduce:
        accumulate(frame, instruction, block);
        break;
      case InstructionKind::scan:
        scan(frame, instruction, block);
        break;
    }
  }
}

Block block_at(const BlockProgram& p, int64_t first, int64_t count, int64_t red, int64_t reds) {
  if (p.mode == Mode::flat) return {0, 1, first, count};
  if (p.mode == Mode::rows) return {first, count, red, reds};
  return {red, reds, first, count};
}

/// Of one of `tasks` that share the work: an instruction takes about this long for an element.
int64_t nanoseconds_of(const BlockProgram& p, int64_t tasks) {
  double elements =
      static_cast<double>(p.points) * static_cast<double>(std::max(p.extent, int64_t{1}));
  return static_cast<int64_t>(0.15 * elements * static_cast<double>(p.instructions.size()) /
                              static_cast<double>(tasks));
}

/// The blocks of red points [begin, end) of a tile.
void run_blocks(const Frame& frame, const Segment& segment, int64_t first, int64_t count,
                int64_t begin, int64_t end) {
  const BlockProgram& p = *frame.program;
  int64_t blocks = (end - begin + p.step - 1) / p.step;
  for (int64_t k = 0; k < blocks; ++k) {
    int64_t red = begin + (segment.reverse ? blocks - 1 - k : k) * p.step;
    int64_t reds = std::min(p.step, end - red);
    run_instructions(frame, segment.body, block_at(p, first, count, red, reds));
  }
}

// Chunks in parallel: each has its own frame and leaves its results in a record.
void sweep_chunks(const Frame& frame, const Segment& segment, int64_t first, int64_t count) {
  const BlockProgram& p = *frame.program;
  int64_t length = segment.reducers.size() > 0 ? kChunk : p.step;
  int64_t chunks = chunks_for(p.extent, length);
  int64_t tasks = std::min(chunks, p.tasks);
  Scratch records(segment.reducers.size() > 0 ? chunks * p.partial_size : 0);
  parallel_for(tasks, nanoseconds_of(p, tasks), [&](int64_t task) {
    FrameScope scope(p, frame.buffers, frame.arguments);
    const Frame& own = scope.frame;
    for (int32_t slot : segment.imports) own.slots[slot] = frame.slots[slot];
    ChunkRange range = chunk_range(chunks, tasks, task);
    for (int64_t chunk = range.begin; chunk < range.end; ++chunk) {
      begin_chunk(own, segment, count);
      int64_t begin = chunk * length;
      run_blocks(own, segment, first, count, begin, std::min(begin + length, p.extent));
      end_chunk(own, segment, count, records.data + chunk * p.partial_size);
    }
  });
  for (int64_t chunk = 0; chunk < chunks; ++chunk)
    add_partial(frame, segment, count, chunk, records.data + chunk * p.partial_size);
}

void sweep(const Frame& frame, const Segment& segment, int64_t first, int64_t count) {
  const BlockProgram& p = *frame.program;
  if (p.extent == 0) return set_empty(frame, segment, count);
  if (segment.prologue.size() > 0) {
    Block widest = block_at(p, first, count, 0, std::min(p.step, p.extent));
    run_instructions(frame, segment.prologue, widest);
  }
  if (p.kept && p.mode != Mode::columns) {
    begin_scans(frame, segment, count);
    run_instructions(frame, segment.body, block_at(p, first, count, 0, p.extent));
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
  const BlockProgram& p = *frame.program;
  run_instructions(frame, p.segments[0].body, Block{});
  if (p.mode == Mode::flat) {
    if (p.segments.size() < 2) return;
    Range body = p.segments[1].body;
    for (int64_t tile = begin; tile < end; ++tile) {
      int64_t first = tile * p.tile;
      run_instructions(frame, body, {0, 1, first, std::min(p.tile, p.points - first)});
    }
    return;
  }
  for (int64_t tile = begin; tile < end; ++tile) {
    int64_t first = tile * p.tile, count = std::min(p.tile, p.points - first);
    for (size_t s = 1; s < p.segments.size(); ++s) {
      const Segment& segment = p.segments[s];
      if (segment.domain == Domain::row)
        run_instructions(frame, segment.body, {0, 1, first, count});
      else
        sweep(frame, segment, first, count);
    }
  }
}

}  // namespace

}  // namespace tn::loop::machine

namespace tn::loop {

void run(const BlockProgram& program, void* const* buffers, const Scalar* arguments) {
  using namespace machine;
  if (program.whole) return run_whole(*program.whole, buffers, arguments);
  for (const BlockProgram& box : program.boxes) run(box, buffers, arguments);
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
