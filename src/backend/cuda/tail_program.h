#pragma once
// What comes after a product of float32 and own kernels of products do themselves: the kernel
// behind the product, as a program for them.
#include <optional>

#include "backend/cuda/prebuilt/product_tails.h"
#include "plan/plan.h"

namespace tn::cuda {

/// A program without addresses, and where they come from.
struct TailOfStep {
  TailProgram program = {};
  size_t result = 0, loads[kTailLoads] = {};  // among the buffers of the step

  /// With addresses; `buffers` are those of the step.
  TailProgram at(void* const* buffers) const;
};

/// Of the kernel behind a library call. Nothing where it stores several results, or does what a
/// program cannot say.
std::optional<TailOfStep> tail_program_of(const Step& step);

}  // namespace tn::cuda
