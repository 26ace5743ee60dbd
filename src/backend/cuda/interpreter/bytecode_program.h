#pragma once
// LoopIR kernels as programs of the interpreter kernel (prebuilt/bytecode.h).
#include <optional>

#include "backend/cuda/cuda_kernel.h"
#include "loop/kernel.h"

namespace tn::cuda {

struct BytecodeProgram {
  Entry entry;       // its launch: parameters are the words of the program
  int64_t work = 0;  // instructions times elements
};

/// Nothing for kernels that are to be compiled: those with scans, with symbols, with stores that
/// combine or may collide, with rows of more than one chunk, with reductions over several sets of
/// axes, with indices beyond 32 bits, and those that are too long.
std::optional<BytecodeProgram> bytecode_program(const loop::Kernel& kernel);

}  // namespace tn::cuda
