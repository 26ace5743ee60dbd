#pragma once
// Walks over recorded nodes: iterative, without hash maps. Marks live in the nodes, so one walk at
// a time.
#include <mutex>

#include "ir/node.h"

namespace tn {

/// Held during a walk: marks are shared by all threads.
std::mutex& walk_mutex();

/// The pending nodes behind some outputs, operands before users.
struct Walk {
  std::vector<Node*> nodes;   // pending, in order
  std::vector<Node*> leaves;  // data, numbers, parameters, in order of first use
  uint32_t epoch = 0;         // marks what was met
  std::vector<Node*> path;    // scratch: from an output down to where the walk is
};

/// Visits operands left to right. Afterwards, for every node met: `epoch` is this walk's, `uses`
/// counts the edges to it from the walk, and `index` numbers its first result: leaves and nodes in
/// one sequence, by order of visit.
void walk(std::span<const Tensor> outputs, Walk& out);
/// A number no walk has used; the caller holds the mutex.
uint32_t new_epoch();
/// Whether a walk ends here: data, numbers, parameters, computed results.
inline bool is_leaf(const Node& node) {
  if (node.op == nullptr || node.op == &scalar_leaf || node.op == &param_leaf) return true;
  for (int i = 0; i < node.outs; ++i)
    if (!node.slots()[i].data.load(std::memory_order_acquire)) return false;
  return true;
}

}  // namespace tn
