#pragma once
// Autotuning: choices that the compiler makes by rule are made by the clock instead.
#include "compiler/compile.h"

namespace tn {

/// The fusion to leave out, if `graph` runs faster on `inputs` without one, in front of what
/// `options` leave out already; else none. Measured once for a graph, sizes and a machine: the
/// choice is kept on disk beside the kernels. The graph is run several times.
std::vector<std::string> tuned_off(const Graph& graph, const CompileOptions& options,
                                   std::span<const Binding> sizes, std::span<const Bound> inputs);

}  // namespace tn
