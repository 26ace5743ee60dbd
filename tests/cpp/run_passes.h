#pragma once
// Graphs before and after passes, on the same values.
#include "passes/pipeline.h"
#include "run_graph.h"

namespace tn {

/// A context that knows the values of the graph's last inputs, those named c…
PassContext known_context(const Graph& graph, const Tensors& in);
/// The outputs of what a pass made of the graph that takes `in`.
std::vector<std::string> run_with(const Graph& after, const PassContext& context,
                                  const Tensors& in);

}  // namespace tn
