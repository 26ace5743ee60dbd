#pragma once
// Autotuning: choices of the compiler are measured instead of estimated.
#include "compiler/compile_graph.h"

namespace tn {

/// How a graph runs fastest.
struct Tuned {
  std::vector<std::string> off;  // for CompileOptions::off
  bool alone = false;            // on the calling thread: the others cost more than they do
};

/// What to measure on.
struct TrialValues {
  std::span<const Bound> inputs;
  const Scalar* scalars = nullptr;
};

/// The way that is fastest on `values`, of all that give the same bits. Measured once for a graph,
/// sizes and a machine: the choice is kept on disk beside the kernels. The graph is run several
/// times.
Tuned tuned(const Graph& graph, const CompileOptions& options, std::span<const Binding> sizes,
            const TrialValues& values);

}  // namespace tn
