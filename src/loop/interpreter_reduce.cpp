// The reduction tree: lanes within a chunk, halving, then lanes over the chunks.
#include <algorithm>
#include <cstring>

#include "loop/interpreter_frame.h"
#include "loop/interpreter_walk.h"

namespace tn::loop::machine {
namespace {

template <class F>
void for_each_reducer(const Frame& frame, const Segment& segment, F&& f) {
  for (int32_t i = segment.reducers.first; i < segment.reducers.last; ++i)
    f(frame.program->reducers[static_cast<size_t>(i)]);
}

/// Independent columns that an accumulator holds: one in rows.
int64_t width(const Frame& frame, int64_t count) {
  return frame.program->mode == Mode::rows ? 1 : count;
}

void clear(const Frame& frame, const Reducer& r, int64_t offset, int64_t columns) {
  if (r.arg) {
    int64_t* index = reinterpret_cast<int64_t*>(frame.base + r.index);
    if (offset == r.total) index += columns;
    std::fill(index, index + columns, -1);
    std::memset(frame.base + offset, 0, static_cast<size_t>(columns * r.size));
  } else {
    const BlockProgram& p = *frame.program;
    int64_t lanes = offset == r.total ? p.total_lanes : p.lanes;
    splat(r.size, frame.base + offset, r.identity.data(), lanes * columns);
  }
}

/// One element per lane, read in place: the lower half of the lanes is set, not combined.
bool is_set_at_once(const BlockProgram& p) { return p.direct && p.extent <= kLanes && p.lanes > 1; }

void halve(const Reducer& r, std::byte* lanes, int64_t count, int64_t columns) {
  for (int64_t s = count / 2; s >= 1; s /= 2)
    r.fn(lanes, lanes, lanes + s * columns * r.size, lanes, s * columns);
}

}  // namespace

void begin_total(const Frame& frame, const Segment& segment, int64_t count) {
  int64_t columns = width(frame, count);
  for_each_reducer(frame, segment, [&](const Reducer& r) {
    if (r.result != kNone) clear(frame, r, r.total, columns);
  });
}

void begin_chunk(const Frame& frame, const Segment& segment, int64_t count) {
  int64_t columns = width(frame, count);
  if (is_set_at_once(*frame.program)) {
    for_each_reducer(frame, segment, [&](const Reducer& r) {
      if (r.arg) clear(frame, r, r.chunk, columns);
    });
    return;
  }
  for_each_reducer(frame, segment, [&](const Reducer& r) {
    if (r.result != kNone) clear(frame, r, r.chunk, columns);
  });
}

/// Row r of a block, in place where its elements lie side by side, else copied to `copy`.
static const std::byte* row_of(const Frame& frame, const Access& access, const Block& block,
                               int64_t r, std::byte* copy) {
  const std::byte* buffer = static_cast<const std::byte*>(frame.buffers[access.buffer]);
  Block row{block.outer + r, 1, block.inner, block.inners};
  int64_t offset = contiguous_offset(*frame.program, access, row);
  if (offset >= 0) return buffer + offset * access.size;
  fill(*frame.program, access, row, buffer, nullptr, copy);
  return copy;
}

// Columns read from the buffer row by row, without a register in between.
static void accumulate_direct(const Frame& frame, const Instruction& instruction,
                              const Block& block) {
  const BlockProgram& p = *frame.program;
  const Reducer& r = p.reducers[static_cast<size_t>(instruction.reducer)];
  const Access& access = p.accesses[static_cast<size_t>(instruction.access)];
  std::byte* chunk = frame.base + r.chunk;
  std::byte* copy = frame.base + r.copy;
  int64_t columns = block.inners, bytes = columns * r.size;
  for (int64_t row = 0; row < block.outers; ++row) {
    const std::byte* src = row_of(frame, access, block, row, copy);
    if (r.arg) {
      int64_t* index = reinterpret_cast<int64_t*>(frame.base + r.index);
      r.arg_fns->columns(chunk, index, src, 1, columns, block.outer + row);
      continue;
    }
    std::byte* lane = chunk + (block.outer + row) % kLanes * bytes;
    if (!is_set_at_once(p))
      r.fn(lane, lane, src, lane, columns);
    else if (row < p.lanes / 2)
      std::memcpy(lane, src, static_cast<size_t>(bytes));
    else
      r.fn(lane - p.lanes / 2 * bytes, lane - p.lanes / 2 * bytes, src, lane, columns);
  }
}

// Rows that fit a block are reduced at once; others add to the lanes of their chunk.
void accumulate(const Frame& frame, const Instruction& instruction, const Block& block) {
  const BlockProgram& p = *frame.program;
  const Reducer& r = p.reducers[static_cast<size_t>(instruction.reducer)];
  const std::byte* src = static_cast<const std::byte*>(frame.slots[instruction.a]);
  if (p.direct) return accumulate_direct(frame, instruction, block);
  if (p.mode == Mode::rows && p.kept) {
    if (!r.arg) return r.run->rows(frame.slots[instruction.dst], src, block.outers, block.inners);
    int64_t* index = static_cast<int64_t*>(frame.slots[instruction.dst]);
    for (int64_t row = 0; row < block.outers; ++row) {
      alignas(8) std::byte best[8] = {};
      index[row] = -1;
      r.arg_fns->run(best, index + row, src + row * block.inners * r.size, block.inners, 0);
    }
    return;
  }
  std::byte* chunk = frame.base + r.chunk;
  int64_t* index = reinterpret_cast<int64_t*>(frame.base + r.index);
  if (p.mode == Mode::rows) {
    if (r.arg) return r.arg_fns->run(chunk, index, src, block.inners, block.inner);
    return r.run->lanes(chunk, src, block.inners);
  }
  int64_t columns = block.inners;
  if (r.arg) return r.arg_fns->columns(chunk, index, src, block.outers, columns, block.outer);
  // Blocks begin at multiples of their height, a power of two: they do not wrap around the lanes.
  int64_t lane = block.outer % kLanes;
  for (int64_t row = 0; row < block.outers; row += kLanes) {
    int64_t rows = std::min(block.outers - row, kLanes - lane);
    std::byte* at = chunk + lane * columns * r.size;
    r.fn(at, at, src + row * columns * r.size, at, rows * columns);
  }
}

void end_chunk(const Frame& frame, const Segment& segment, int64_t count, std::byte* record) {
  const BlockProgram& p = *frame.program;
  int64_t columns = width(frame, count);
  int64_t lanes = is_set_at_once(p) ? p.lanes / 2 : p.lanes;
  for_each_reducer(frame, segment, [&](const Reducer& r) {
    if (r.result == kNone) return;
    std::byte* chunk = frame.base + r.chunk;
    std::byte* out = record + r.partial;
    if (!r.arg) halve(r, chunk, lanes, columns);
    std::memcpy(out, chunk, static_cast<size_t>(columns * r.size));
    if (r.arg)
      std::memcpy(out + (columns * r.size + 7) / 8 * 8, frame.base + r.index,
                  static_cast<size_t>(columns) * 8);
  });
}

void add_partial(const Frame& frame, const Segment& segment, int64_t count, int64_t chunk,
                 const std::byte* record) {
  int64_t columns = width(frame, count);
  for_each_reducer(frame, segment, [&](const Reducer& r) {
    if (r.result == kNone) return;
    const std::byte* in = record + r.partial;
    if (r.arg) {
      int64_t* index = reinterpret_cast<int64_t*>(frame.base + r.index) + columns;
      const int64_t* other = reinterpret_cast<const int64_t*>(in + (columns * r.size + 7) / 8 * 8);
      return r.arg_fns->merge(frame.base + r.total, index, in, other, columns);
    }
    std::byte* lane = frame.base + r.total + chunk % kLanes * columns * r.size;
    r.fn(lane, lane, in, lane, columns);
  });
}

void end_total(const Frame& frame, const Segment& segment, int64_t count) {
  int64_t columns = width(frame, count);
  for_each_reducer(frame, segment, [&](const Reducer& r) {
    if (r.result == kNone) return;
    std::byte* dst = static_cast<std::byte*>(frame.slots[r.result]);
    if (r.arg) {
      const int64_t* index = reinterpret_cast<const int64_t*>(frame.base + r.index) + columns;
      std::copy(index, index + columns, reinterpret_cast<int64_t*>(dst));
    } else {
      halve(r, frame.base + r.total, frame.program->total_lanes, columns);
      std::memcpy(dst, frame.base + r.total, static_cast<size_t>(columns * r.size));
    }
  });
}

void set_empty(const Frame& frame, const Segment& segment, int64_t count) {
  for_each_reducer(frame, segment, [&](const Reducer& r) {
    if (r.result == kNone) return;
    static constexpr int64_t kNowhere = -1;
    if (r.arg)
      splat(8, frame.slots[r.result], &kNowhere, count);
    else
      splat(r.size, frame.slots[r.result], r.empty.data(), count);
  });
}

// The carry starts as what changes nothing; an exclusive scan shows it, so there it is the plain
// zero.
void begin_scans(const Frame& frame, const Segment& segment, int64_t count) {
  if (!segment.has_scan) return;
  for_each_reducer(frame, segment, [&](const Reducer& r) {
    splat(r.size, frame.base + r.chunk, r.exclusive ? r.empty.data() : r.identity.data(), count);
  });
}

static void scan_row(const Reducer& r, std::byte* dst, const std::byte* src, std::byte* carry,
                     int64_t n) {
  alignas(8) std::byte before[8];
  std::memcpy(before, carry, static_cast<size_t>(r.size));
  (r.reverse ? r.run->scan_reverse : r.run->scan)(dst, src, carry, n);
  if (!r.exclusive) return;
  size_t size = static_cast<size_t>(r.size), moved = static_cast<size_t>(n - 1) * size;
  std::memmove(dst + (r.reverse ? 0 : size), dst + (r.reverse ? size : 0), moved);
  std::memcpy(dst + (r.reverse ? moved : 0), before, size);
}

void scan(const Frame& frame, const Instruction& instruction, const Block& block) {
  const BlockProgram& p = *frame.program;
  const Reducer& r = p.reducers[static_cast<size_t>(instruction.reducer)];
  std::byte* dst = static_cast<std::byte*>(frame.slots[instruction.dst]);
  const std::byte* src = static_cast<const std::byte*>(frame.slots[instruction.a]);
  std::byte* carry = frame.base + r.chunk;
  int64_t row_bytes = block.inners * r.size;
  if (p.mode == Mode::rows) {
    for (int64_t row = 0; row < block.outers; ++row)
      scan_row(r, dst + row * row_bytes, src + row * row_bytes, carry + row * r.size, block.inners);
    return;
  }
  std::byte* next = frame.base + r.total;
  for (int64_t k = 0; k < block.outers; ++k) {
    int64_t row = (r.reverse ? block.outers - 1 - k : k) * row_bytes;
    r.fn(next, carry, src + row, carry, block.inners);
    std::memcpy(dst + row, r.exclusive ? carry : next, static_cast<size_t>(row_bytes));
    std::memcpy(carry, next, static_cast<size_t>(row_bytes));
  }
}

}  // namespace tn::loop::machine
