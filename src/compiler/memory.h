#pragma once
// Memory of a plan: where every buffer lies in a run.
#include "runtime/plan.h"

namespace tn {

/// Decides where the plan's buffers lie, which results take the place of operands, and which large
/// ones are written past the caches. Called once, when all steps are there. Without `quick`, other
/// orders of the steps are tried, and taken when they need clearly less memory. `order` is the one
/// that was taken for a plan of the same steps on other sizes; an empty one is filled.
void plan_memory(Plan& plan, bool quick, std::vector<int32_t>* order = nullptr);

}  // namespace tn
