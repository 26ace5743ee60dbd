#pragma once
// Grouping: which elementwise ops share a kernel.
#include "ir/graph.h"

namespace tn {

/// group[i] is the op at the root of the kernel that computes op i, or -1 when op i is no kernel's.
/// Members other than the root are read inside their kernel only (and stored when the graph returns
/// them).
std::vector<int> group_elementwise(const Graph& graph);

/// Whether the loops can compute this op's scalar function or monoid for its element types.
bool has_loop_form(const Graph& graph, const GraphOp& op);

}  // namespace tn
