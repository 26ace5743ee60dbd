#pragma once
// What launchers of devices share: the memory of a run, its steps on this thread, its results.
#include "plan/plan.h"

namespace tn {

/// Allocates the blocks of a run on a device, or reuses the memory of donated inputs.
void take_blocks(const Plan& plan, Device device, std::span<const Bound> inputs, BufferRef* blocks);

/// What a run reads and writes.
struct RunMemory {
  const Plan& plan;
  std::span<const Bound> inputs, constants;
  const BufferRef* blocks;
};

/// Runs the steps over memory that `address_of` finds. `at`: the step that runs.
void run_steps(const RunMemory& memory, const Scalar* scalars,
               char* (*address_of)(const Buffer& buffer), bool* overwritten = nullptr,
               const Step** at = nullptr);

/// Throws the error under way of a step that runs later than its call: with the op and the user's
/// line.
[[noreturn]] void throw_with_place(const Step& step);

void give_results(const RunMemory& memory, std::span<Bound> outputs);

}  // namespace tn
