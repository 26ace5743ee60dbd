#pragma once
// What is known of the values of a kernel before it runs.
#include "loop/kernel.h"

namespace tn::codegen {

/// By value: a cast from a float to an integer type whose operand is a number inside of that type,
/// so that it need not saturate. The reductions of exp and its kin are such casts.
std::vector<bool> casts_inside(const loop::Kernel& kernel);

/// By value: 1 divided by a float32 that is known to be far from 0 and from infinity, so that
/// nothing on the way to the rounded quotient leaves the range of normal numbers.
std::vector<bool> plain_reciprocals(const loop::Kernel& kernel);

}  // namespace tn::codegen
