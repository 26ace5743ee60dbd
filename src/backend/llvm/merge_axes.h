#pragma once
// Loops that are one loop.
#include "loop/kernel.h"

namespace tn::codegen {

/// Joins neighbouring axes of one kind wherever every index of the kernel is as simple over the
/// joined axis: longer rows have fewer ends. The order of the points stays.
void merge_axes(loop::Kernel& kernel);

}  // namespace tn::codegen
