#pragma once
// Reports of a compilation, derived from the plan and the kernel set it was made from.
#include "compiler/kernel_set.h"
#include "sharding/traffic.h"

namespace tn {

/// Calls f with a compilation, or with its parts where it is over devices.
void for_each_whole(const Compilation& made, FunctionRef<void(const Compilation&)> f);

/// The graph after its passes.
std::string optimized_text(const Compilation& made);
/// Kernels as loops, and calls of the library, in the order in which they run.
std::string loops_text(const Compilation& made);
/// The machine code of the kernels.
std::string code_text(const Compilation& made);
/// How the parts on meshes are divided; "" where there are none.
std::string sharding_text(const Compilation& made);
/// The collectives of its parts on meshes.
std::vector<sharding::Traffic> traffic_of(const Compilation& made);
Decisions decisions_of(const Compilation& made);

/// What to ask the code generator for about the kernel of a step.
KernelRequest request_for(const Compilation& made, const Step& step);

}  // namespace tn
