#pragma once
// Products of bf16 by the tile registers of AMX.
#include "backend/cpu/kernels/gemm_kernels.h"

namespace tn {

/// The kernels, or null where the processor, the system or a trial multiplication refuses. Found
/// once. Operands must have the form bfloat16.
const GemmKernels<float>* amx_kernels();

}  // namespace tn
