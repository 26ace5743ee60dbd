#pragma once
// Control flow on the CPU: plans that run inside a step of another.
#include "plan/plan.h"

namespace tn {

/// `buffers` are operands, then results.
void run_control(const ControlStep& step, void* const* buffers);

}  // namespace tn
