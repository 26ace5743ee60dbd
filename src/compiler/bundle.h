#pragma once
// Bundles: independent kernels run as one step, with one synchronisation of the threads. The many
// small updates of an optimizer become one step.
#include "plan/plan.h"

namespace tn {

/// Joins neighbours among the steps that run native kernels, or will.
void bundle_steps(Plan& plan);

}  // namespace tn
