#pragma once
// The graphs inside an op: bodies of composites, and the graphs that control flow runs.
#include "ir/body.h"
#include "ir/mesh_layout.h"

namespace tn::sharding {

/// Where the values of a slot of the op are inside.
struct InnerSlot {
  std::vector<Val> values;  // one, or the outputs of both branches; none for a predicate
  int steps = 0;            // 1: a dimension in front that the op walks along
};

/// All graphs of an op as one graph: they have the same inputs.
struct InnerGraph {
  Graph graph;
  std::vector<InnerSlot> slots;             // of operands, then results
  std::vector<std::pair<Val, Val>> alike;   // divided alike: a carry and what it becomes
  std::vector<std::vector<Val>> values_of;  // of each graph among the attributes: its values here

  /// The values that must be divided as `v` is.
  std::vector<std::vector<Val>> neighbours() const;
};

/// What is inside an op; nothing where it has no graph, or one whose links are not known.
std::optional<InnerGraph> inner_graph(const Graph& graph, const GraphOp& op);

}  // namespace tn::sharding
