#pragma once
// Plan: what runs. A list of steps over a table of buffers; everything else was decided when it was
// made.
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/buffer.h"
#include "tenon/shape.h"

namespace tn {

struct StepSource;  // loop/step_source.h

/// What a step is called with.
struct StepCall {
  void* const* buffers;   // in the step's order
  const Scalar* scalars;  // in the step's order
  bool stream = false;    // the pages of what it writes exist: see KernelFrame::stream
};

/// A place in the memory of a run.
struct Spot {
  int32_t block = 0;  // of Plan::blocks
  int64_t offset = 0;
};

/// One kernel or library call. Buffers are numbers in the plan's table: inputs first, then
/// constants, then its own.
struct Step {
  void (*run)(const void* data, const StepCall& call);
  std::shared_ptr<const void> data;
  std::vector<int32_t> buffers;
  std::vector<int32_t>
      scalars;  // run-time numbers it takes, by place in the call; ~n: imaginary part
  std::vector<int32_t> writes = {};  // places in `buffers` that it writes; none: it may write any
  struct Pair {
    int32_t input, output;  // places in `buffers`
  };
  std::vector<Pair> in_place = {};  // the output may lie where the input did
  bool effect = false;              // run for what it does: such steps keep their order
  bool stream = false;    // its results are large and not read soon: stores may bypass caches
  std::string name = {};  // "softmax"; with the bits of the user's place (Loc), for readers
  uint64_t place = 0;
  std::shared_ptr<const StepSource> source = {};  // what it does, kept for those who print it
};

/// A value in memory: a buffer and where in it the elements begin.
struct Bound {
  BufferRef buffer;
  int64_t offset = 0;  // in bytes
};

/// How the places of a plan's buffers are found; see compiler/placement.h.
enum class MemoryPlanning : uint8_t {
  usual,  // as the effort says: greedy, or best_fit for the highest
  greedy,
  best_fit,
  optimal,
  none,
};

struct Plan {
  int inputs = 0, scalars = 0;
  std::vector<Bound> constants;
  std::vector<int64_t> bytes;  // of the plan's own buffers
  std::vector<Step> steps;
  struct Output {
    int32_t buffer;
    int64_t offset;
  };
  std::vector<Output> outputs;
  std::vector<int64_t> donated;  // by input: the bytes that results may take over; 0: none
  bool one_thread = false;       // a run stays on the thread that calls it

  // Filled by plan_memory (compiler/memory.h).
  struct Block {
    int64_t bytes;
    int32_t input = -1;  // the input whose memory serves if it was given away; else it is allocated
  };
  std::vector<Block> blocks;   // what a run takes: buffers of outputs, then the arena
  std::vector<Spot> spots;     // of the plan's own buffers
  size_t first_overwrite = 0;  // the first step that may write in memory of inputs
  MemoryPlanning planning = MemoryPlanning::usual;  // how spots were found
  bool is_least = false;  // it is known that these steps, in this order, need no less
  /// Says what needs the memory, when there is not enough.
  std::string (*explain_memory)(const Plan& plan) = nullptr;

  int first_own() const { return inputs + static_cast<int>(constants.size()); }
};

/// Runs the steps in order; any number of threads may run one plan at once. `outputs` has the
/// plan's length and receives the results. A donated input is taken over when its Bound holds the
/// only reference to memory that may be written. A run that somebody wants to stop does so between
/// steps, before it writes there; should a step fail later, `overwritten` says so.
void run(const Plan& plan, std::span<const Bound> inputs, const Scalar* scalars,
         std::span<Bound> outputs, bool* overwritten = nullptr);

}  // namespace tn
