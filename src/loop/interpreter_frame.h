#pragma once
// The memory of one running task, and what reductions and scans do with it.
#include "loop/interpreter_program.h"

namespace tn::loop::machine {

/// Slots, registers and accumulators.
struct Frame {
  const BlockProgram* program;
  void* const* buffers;
  const Scalar* arguments;
  void** slots;
  std::byte* base;
};

/// Memory of the calling thread, kept for the next use; scopes nest.
class Scratch {
 public:
  explicit Scratch(int64_t bytes);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  std::byte* data;
};

class FrameScope {
 public:
  FrameScope(const BlockProgram& program, void* const* buffers, const Scalar* arguments);

 private:
  Scratch memory_;

 public:
  Frame frame;
};

// Reductions. `count` is the number of par points of the tile. Results of a chunk go through a
// record of BlockProgram::partial_size bytes, on whichever thread they are computed.
void begin_total(const Frame& frame, const Segment& segment, int64_t count);
void begin_chunk(const Frame& frame, const Segment& segment, int64_t count);
void accumulate(const Frame& frame, const Instruction& instruction, const Block& block);
void end_chunk(const Frame& frame, const Segment& segment, int64_t count, std::byte* record);
void add_partial(const Frame& frame, const Segment& segment, int64_t count, int64_t chunk,
                 const std::byte* record);
void end_total(const Frame& frame, const Segment& segment, int64_t count);
/// The results of reductions over nothing.
void set_empty(const Frame& frame, const Segment& segment, int64_t count);

void begin_scans(const Frame& frame, const Segment& segment, int64_t count);
void scan(const Frame& frame, const Instruction& instruction, const Block& block);

}  // namespace tn::loop::machine
