#pragma once
// Bundles: kernels that do not depend on each other run as one step, so that threads meet once.
// Many small updates of an optimizer become one.
#include "plan/plan.h"

namespace tn {

/// Joins neighbours among the steps that run native kernels, or will.
void bundle_steps(Plan& plan);

}  // namespace tn
