#pragma once
// Running a graph once, now: for values that the compiler wants to know.
#include "ir/graph.h"
#include "plan/plan.h"

namespace tn {

/// The outputs of the graph, compiled with the least effort and run.
std::vector<Bound> evaluate(const Graph& graph, std::span<const Bound> inputs);

}  // namespace tn
