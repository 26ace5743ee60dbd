#pragma once
// Stages: the compiler's representations of a graph as text, by name.
#include "base/function_ref.h"
#include "compiler/compile_graph.h"

namespace tn {

/// "graph", "optimized", "loops", "kernels", "plan", "memory", "decisions" or "sharding"; fails for
/// other names. `compiled` gives what was made of the graph.
std::string stage_text(const Graph& graph, std::string_view stage,
                       FunctionRef<Compilation()> compiled);
/// "numpy", "torch" or "jax": the graph as Python.
std::string python_text(const Graph& graph, const CompileOptions& options, std::string_view target);

/// The graph as it is written in Python: calls inlined, equal ops once, nothing that is not needed.
Graph graph_for_source(const Graph& graph);
bool is_source_target(std::string_view name);

/// "fuse: exp, sum in one kernel: rows fit the cache (train.py:31, in loss)".
std::string to_text(const Decision& decision);

}  // namespace tn
