#pragma once
// Kernels of LoopIR as C11: the bits of the interpreter, no library but the compiler's builtins.
#include <string>
#include <string_view>

#include "loop/kernel.h"

namespace tn::source {

/// The flags without which a compiler may change bits, and those that make it fast.
inline constexpr std::string_view kCFlags =
    "-std=c11 -O3 -march=native -ffp-contract=off -fno-math-errno -fno-trapping-math";

/// What printed functions need before them: types, conversions, integer operations, products.
std::string c_prelude(std::string_view functions);

/// `static void function(buffers in the kernel's order, then `const uint64_t *arguments` where it
/// has some)`. Sizes are constants. Arguments hold the bits of their element types.
std::string kernel_c(const loop::Kernel& kernel, std::string_view function);

/// A math function of f32 or f64, `tn_exp_f32`, or its narrow form, `tn_exp_narrow`.
std::string c_math_name(loop::Op op, DType type, bool narrow);
/// It spelled out: with the same bits wherever it runs.
std::string math_c(loop::Op op, DType type, bool narrow);

}  // namespace tn::source
