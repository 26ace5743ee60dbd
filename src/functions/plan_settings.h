#pragma once
// Converts the users' plan settings, which are names, to options of the compiler.
#include "compiler/compile_graph.h"
#include "tenon/compile.h"

namespace tn {

/// Fails for names that nothing has. Of several targets, code that runs here is for the best that
/// this machine can run; where there is none, for this machine.
CompileOptions options_of(int optimization_level, const PlanSettings& settings);

/// For functions that are not saved: fails where no target can run here.
void check_runs_here(const PlanSettings& settings);

}  // namespace tn
