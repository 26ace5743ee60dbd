#pragma once
// compile: from a Graph to a Plan. The one way anything runs.
#include "ir/graph.h"
#include "runtime/plan.h"

namespace tn {

/// E0 groups elementwise ops and interprets them: microseconds to a plan, no code generation.
enum class Effort : uint8_t { e0 };

/// The first `runtime_scalars` constants of the graph are given at every run instead of being baked
/// in.
std::shared_ptr<const Plan> compile(const Graph& graph, Effort effort, int runtime_scalars = 0);

/// The kernels and library calls a graph becomes, as text.
std::string kernels_text(const Graph& graph, Effort effort);

}  // namespace tn
