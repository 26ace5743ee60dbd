#pragma once
// Fitting: the graph of a set is rewritten so that its plan needs less memory. Values that are made
// early and read late are computed again before they are read.
#include "compiler/residence.h"

namespace tn {

/// A graph that does what another does, in another order, and some of it for another time.
struct Rewritten {
  Graph graph;
  std::vector<int> origin;  // by op: that of the other graph
  std::vector<bool> again;  // by op: made for another time, and not to be made earlier
};

/// What the turns of a residence do.
Rewritten rewrite(const Graph& graph, const StoredValues& values, std::span<const Turn> turns);

}  // namespace tn
