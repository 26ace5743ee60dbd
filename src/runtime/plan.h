#pragma once
// Plan: what runs. A list of steps over a table of buffers; everything else was decided when it was
// made.
#include <memory>
#include <span>
#include <vector>

#include "runtime/buffer.h"
#include "tenon/shape.h"

namespace tn {

/// What a step is called with.
struct StepCall {
  void* const* buffers;   // in the step's order
  const Scalar* scalars;  // in the step's order
  bool stream = false;    // the pages of what it writes exist: see KernelFrame::stream
};

/// One kernel or library call. Buffers are numbers in the plan's table: inputs first, then
/// constants, then its own.
struct Step {
  void (*run)(const void* data, const StepCall& call);
  std::shared_ptr<const void> data;
  std::vector<int32_t> buffers;
  std::vector<int32_t>
      scalars;  // run-time numbers it takes, by place in the call; ~n: imaginary part
  std::vector<int32_t> allocate;  // buffers it is the first to write
  std::vector<int32_t> release;   // buffers nobody needs afterwards
};

/// A value in memory: a buffer and where in it the elements begin.
struct Bound {
  BufferRef buffer;
  int64_t offset = 0;  // in bytes
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

  int first_own() const { return inputs + static_cast<int>(constants.size()); }
  /// Fills `allocate` and `release` of every step from first and last uses. Called once, when all
  /// steps are there.
  void find_lifetimes();
};

/// Runs the steps in order. `outputs` has the plan's length and receives the results.
void run(const Plan& plan, std::span<const Bound> inputs, const Scalar* scalars,
         std::span<Bound> outputs);

}  // namespace tn
