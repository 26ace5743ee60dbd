#pragma once
// Ahead-of-time compilation: from a function and descriptions of its inputs to a Program.
#include "executable/program.h"
#include "tenon/executable.h"

namespace tn {

/// Traces `f` with symbols for the sizes that are open and makes the plans of sizes all over their
/// ranges, so that no kernel is missing later.
std::shared_ptr<const Program> program_of(const SizedFunction& f,
                                          const std::vector<InputInfo>& inputs,
                                          const AheadSettings& settings);

}  // namespace tn
