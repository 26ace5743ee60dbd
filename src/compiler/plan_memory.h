#pragma once
// Memory of a plan: where every buffer lies in a run.
#include "plan/plan.h"

namespace tn {

/// Decides where the plan's buffers lie, which results take the place of operands, and which large
/// ones are written past the caches. Called once, when all steps are there. With best_fit other
/// orders of the steps are tried, and taken when they need clearly less memory; with optimal, when
/// they need less. With none every buffer has a place of its own. `order` is the one that was taken
/// for a plan of the same steps on other sizes; an empty one is filled.
void plan_memory(Plan& plan, MemoryPlanning how, std::vector<int32_t>* order = nullptr);

}  // namespace tn
