#pragma once
// Fitting: rematerialisation under a memory budget. The graph of a set is rewritten so that values
// with a long lifetime are recomputed before they are read.
#include "compiler/residence.h"

namespace tn {

/// An equivalent graph in another order, with some ops repeated.
struct Rewritten {
  Graph graph;
  std::vector<int> origin;  // by op: that of the other graph
  std::vector<bool> again;  // by op: a recomputation, which must not be hoisted
};

/// What the turns of a residence do.
Rewritten rewrite(const Graph& graph, const StoredValues& values, std::span<const Turn> turns);

}  // namespace tn
