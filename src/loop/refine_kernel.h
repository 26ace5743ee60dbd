#pragma once
// Kernels on flat axes, refined: an axis is cut where indices divide by it, and joined again where
// all agree.
//
//   axes p0:24;  load x[6*(p0%4) + p0//4]     =     axes p0:6 p1:4;  load x[p0 + 6*p1]
#include "loop/kernel.h"

namespace tn::loop {

/// The same kernel over more axes with simpler indices. Parallel axes stay in front of the others.
/// When the caps of refinement are passed it comes back as it was.
Kernel refined(Kernel kernel);

/// Whether every index and mask is linear in the axes, without loaded values.
bool is_linear(const Kernel& kernel);

}  // namespace tn::loop
