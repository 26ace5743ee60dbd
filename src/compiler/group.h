#pragma once
// Grouping: which elementwise ops share a kernel.
#include "ir/graph.h"

namespace tn {

/// What becomes of the ops of a graph.
struct Grouping {
  static constexpr int kAlone = -1;    // no kernel of scalars: a view, a loop nest, a library call
  static constexpr int kInlined = -2;  // computed again by every kernel that reads it
  /// By op: the op at the root of the kernel that computes it, or one of the above. Members other
  /// than the root are read inside their kernel only (and stored when the graph returns them).
  std::vector<int> of;
  std::vector<int> producer;  // by value: the op that makes it, -1 for inputs
};

Grouping group_elementwise(const Graph& graph);

}  // namespace tn
