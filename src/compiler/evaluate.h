#pragma once
// Evaluates a graph at compile time, for constant folding.
#include "ir/graph.h"
#include "plan/plan.h"

namespace tn {

/// The outputs of the graph, compiled with the least effort and run.
std::vector<Bound> evaluate(const Graph& graph, std::span<const Bound> inputs);

}  // namespace tn
