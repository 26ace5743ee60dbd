#pragma once
// The tables of the block interpreter that are compiled for the levels of CPUs.
#include "backend/cpu/cpu_level.h"
#include "loop/interpreter_ops.h"

namespace tn::cpu {

/// The table of a level.
const loop::BlockOps& block_ops(CpuLevel level);
/// Takes the tables above v2 into use; the code generator does so at load. The runtime library is
/// without: its interpreter serves the few kernels that have no code, with equal bits.
void use_wider_block_ops();

}  // namespace tn::cpu
