#pragma once
// Graphs that the processes of a launcher run together.
#include "ir/graph.h"
#include "tenon/tensor.h"

namespace tn {

/// Whether a graph has collectives with other processes, or is divided among them. Collectives pair
/// in the order of the plan, so all processes must run the same plan at the same call: none that is
/// chosen by a clock, and none that one process has compiled earlier than another.
bool is_run_together(const Graph& graph);

/// Of functions that run op by op, because compiling is disabled: results on a mesh are evaluated,
/// as those of compiled functions are, in the order of the calls.
void evaluate_together(const Tensors& results);

}  // namespace tn
