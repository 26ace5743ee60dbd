#pragma once
// Stages: what the compiler makes of a graph, as text, by name.
#include "compiler/compile.h"

namespace tn {

/// "graph", "optimized", "loops", "kernels", "plan", "memory" or "decisions"; fails for another.
std::string stage_text(const Graph& graph, const CompileOptions& options, std::string_view stage);

/// "fuse: exp, sum in one kernel: rows fit the cache (train.py:31, in loss)".
std::string to_text(const Decision& decision);

}  // namespace tn
