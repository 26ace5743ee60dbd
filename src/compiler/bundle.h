#pragma once
// Bundles: kernels that do not depend on each other run as one step, so that threads meet once.
// Many small updates of an optimizer become one.
#include "runtime/native.h"
#include "runtime/plan.h"

namespace tn {

/// Steps that run one native kernel: `run` of Step.
void run_native(const void* data, const StepCall& call);

/// Joins neighbours among the steps that run native kernels, or will. Returns how many steps went.
int bundle_steps(Plan& plan);

}  // namespace tn
