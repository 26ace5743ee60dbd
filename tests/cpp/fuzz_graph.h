#pragma once
// Random typed graphs, drawn from the op table.
#include <optional>

#include "ir/graph.h"
#include "ir/sizes.h"

namespace tn {

/// A graph of a few to some twenty ops; the same for the same seed. Ranks 0 to 4, extents with 0, 1
/// and odd ones, now and then rows longer than a chunk of the reduction tree.
Graph fuzz_graph(uint64_t seed);

/// A graph with symbolic sizes, which serves all values of them; and those it was drawn with.
struct SymbolicGraph {
  Graph graph;
  std::vector<Binding> sizes;
};
SymbolicGraph fuzz_symbolic_graph(uint64_t seed);

/// One op on inputs of its sample's types, with a symbol for each size; nothing where it cannot be
/// recorded for all sizes.
std::optional<SymbolicGraph> symbolic_sample_graph(const OpDef& op, const Sample& sample);

/// Values for its inputs: mostly around 0, with signed zeros, infinities, NaN and large numbers.
Tensors fuzz_inputs(const Graph& graph, uint64_t seed);

/// One op on inputs of its sample's types; nothing where it cannot be recorded without values.
std::optional<Graph> sample_graph(const OpDef& op, const Sample& sample);

}  // namespace tn
