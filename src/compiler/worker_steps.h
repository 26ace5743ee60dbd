#pragma once
// Collectives among the steps of a plan: where they fold in place, which are joined, and what runs
// between their start and their end.
#include <string>
#include <string_view>

#include "plan/plan.h"

namespace tn {

/// Results of sums over workers take the memory of operands that no later step reads.
void fold_in_place(Plan& plan);

/// Among the names of CompileOptions::on: all workers run the plan.
inline constexpr std::string_view kOverlap = "overlap";

/// For a plan that all workers run. Sums over workers become two steps, a start where the operand
/// is ready and a wait in front of the first reader. Steps that need no sum go first if they
/// `may_go_ahead`, within a budget of memory. Small sums that are ready together are joined: one
/// step has all their buffers.
void overlap_collectives(Plan& plan, bool may_go_ahead = true);

/// A line for each start: what was joined, and how many steps run until its wait.
std::string collectives_text(const Plan& plan);

}  // namespace tn
