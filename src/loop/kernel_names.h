#pragma once
// How the text of a kernel names its axes.
#include <string>
#include <vector>

#include "loop/kernel.h"

namespace tn::loop {

/// p0, r1, s2: the kind of the axis and its number.
std::vector<std::string> axis_names(const std::vector<KernelAxis>& axes);

}  // namespace tn::loop
