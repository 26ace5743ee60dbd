#pragma once
// Plans whose kernels are C, compiled by a compiler of this machine.
#include <span>

#include "compiler/compile_graph.h"
#include "fuzz_check.h"

namespace tn {

/// A plan for every graph; one run of the compiler serves them all. Library calls, and the kernels
/// that work on their blocks, stay what they are.
std::vector<std::shared_ptr<const Plan>> plans_in_c(std::span<const Graph> graphs,
                                                    const CompileOptions& options,
                                                    const std::string& compiler);

/// One graph at a time.
Way in_c(const CompileOptions& options, const std::string& compiler);

}  // namespace tn
