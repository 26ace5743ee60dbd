#pragma once
// What the interpreter executes: instructions over blocks, grouped into segments.
//
// A domain point is (outer, inner). Without reductions there is one outer point and the inner ones
// are the flat par axes. With them, rows has the par axes outside and the red axes inside, columns
// the other way round. A tile is a range of par points; all that happens in it is
//   row segment 0, sweep 0, row segment 1, sweep 1, ...
// where a sweep goes through the blocks of the tile and ends with the values of its reductions.
#include <array>
#include <cstddef>
#include <vector>

#include "loop/interpreter.h"
#include "loop/interpreter_ops.h"
#include "runtime/scalar_bits.h"

namespace tn::loop::machine {

/// The element type that a computed value is found by in BlockOps: its operand's, for select that
/// of the branches. Narrow forms of math have the place of bf16, which has no arithmetic.
inline DType key_of(const Kernel& kernel, const Value& v) {
  if (v.narrow) return DType::bf16;
  return kernel.values[static_cast<size_t>(v.op == Op::select ? v.b : v.a)].type;
}

struct Loop {
  int64_t extent, stride;
};

/// A range of BlockProgram::loops, outermost first: an affine function of a flat index.
struct Walk {
  int32_t first = 0, count = 0;
};

/// Addresses of the points of a block: base + outer walk + inner walk, in elements.
struct Access {
  int32_t buffer = kNone;
  int32_t size = 8;  // of an element
  int64_t base = 0;
  Walk outer = {}, inner = {};
  bool unit = false;  // inner points lie side by side
};

enum class InstructionKind : uint8_t {
  compute,   // dst = fn(a, b, c)
  argument,  // dst = the scalar number `a`
  splat,     // dst = the one element of a, repeated
  expand,    // dst = the row value a, at every point of its row
  load,      // dst = access; points straight at the buffer where it can, else fills `home`
  load_at,   // the same, from the offset in a on: of each row, or one of all
  gather,    // dst = buffer at the offsets a
  aim,       // dst = where the store `access` goes if that is contiguous, else `home`
  store,     // access = a
  scatter,   // buffer at the offsets a = b, combined in order
  iota,      // dst = access as a number
  reduce,
  scan,
};

struct Instruction {
  InstructionKind kind = InstructionKind::compute;
  uint8_t size = 8;  // of an element of dst, or of what is stored
  DType type = DType::f32;
  int32_t dst = 0, a = 0, b = 0, c = 0;
  int32_t home = 0;     // load, aim: the slot of the register
  bool by_row = false;  // load_at
  bool drops = false;   // load_at by rows: those where b is false are 0
  int32_t mask = kNone;
  int32_t access = kNone;
  int32_t reducer = kNone;
  BlockFn fn = nullptr;
  decltype(RunFns::scatter) scatter = nullptr;  // null: the last one stays
};

/// A reduction or scan: how it combines and where its accumulators are.
struct Reducer {
  Monoid monoid = Monoid::add;
  DType type = DType::f32;
  int32_t size = 4;
  bool arg = false, reverse = false, exclusive = false;
  int32_t result = kNone;  // slot of the row value; none for scans
  std::array<std::byte, 8> identity{}, empty{};
  BlockFn fn = nullptr;
  const RunFns* run = nullptr;
  const ArgFns* arg_fns = nullptr;
  // Offsets in the frame: lanes of the chunk, lanes over chunks, indices of arg reductions; scans
  // keep their carry in `chunk`.
  int64_t chunk = 0, total = 0, index = 0, copy = 0;
  int64_t partial = 0;  // offset in the record of one chunk's results
};

struct Range {
  int32_t first = 0, last = 0;
  int32_t size() const { return last - first; }
};

enum class Domain : uint8_t { uniform, row, full };

struct Segment {
  Domain domain = Domain::full;
  Range prologue = {};                // once per tile
  Range body = {};                    // per block
  Range reducers = {};                // reductions that end with this sweep
  std::vector<int32_t> imports = {};  // slots made before the sweep
  bool has_scan = false, reverse = false;
};

enum class Mode : uint8_t { flat, rows, columns, whole };

struct WholeProgram;

}  // namespace tn::loop::machine

namespace tn::loop {

struct BlockProgram {
  using Mode = machine::Mode;
  Mode mode = Mode::flat;
  bool kept = true;      // a tile is one block, so values live on from sweep to sweep
  bool ordered = false;  // scattered stores: one thread, row-major order
  bool sweep_in_parallel = false;
  bool direct = false;      // columns: reductions read the buffers, there is nothing to compute
  int64_t lanes = kLanes;   // of a chunk that can hold an element: the others are the identity
  int64_t total_lanes = 1;  // the same over chunks
  int64_t points = 1;       // of the par axes
  int64_t extent = 1;       // of the red or scan axes
  int64_t tile = kBlock;    // par points of a tile
  int64_t step = 1;         // red points of a block
  int64_t tiles = 0, tasks = 1;
  int64_t partial_size = 0;  // bytes of one chunk's results
  std::vector<machine::Segment> segments;
  std::vector<machine::Instruction> instructions;
  std::vector<machine::Access> accesses;
  std::vector<machine::Loop> loops;
  std::vector<machine::Reducer> reducers;
  std::vector<const void*> constant_slots;  // the first slots
  std::vector<int64_t> register_slots;      // the others, as offsets in the frame
  std::vector<std::byte> constants;
  int64_t frame_size = 0;  // registers and accumulators
  std::shared_ptr<const machine::WholeProgram> whole;
  std::vector<BlockProgram> boxes;  // programs of parts of the domain, instead of all the above

  int64_t slots() const {
    return static_cast<int64_t>(constant_slots.size() + register_slots.size());
  }
};

}  // namespace tn::loop

namespace tn::loop::machine {

/// The points of a block: outer [outer, outer + outers) and inner [inner, inner + inners).
struct Block {
  int64_t outer = 0, outers = 1, inner = 0, inners = 1;
  int64_t size() const { return outers * inners; }
};

using tn::element_bits;

std::shared_ptr<const WholeProgram> prepare_whole(const Kernel& kernel,
                                                  std::span<const Binding> symbols,
                                                  const BlockOps& ops);
void run_whole(const WholeProgram& program, void* const* buffers, const Scalar* arguments);

}  // namespace tn::loop::machine
