#include "ir/walk.h"

#include "base/at_fork.h"

namespace tn {

std::mutex& walk_mutex() {
  static auto& mutex = guarded_at_fork(*new std::mutex, 2);
  return mutex;
}

namespace {

uint32_t next_epoch = 0;

/// Marks `node` as met; true the first time.
bool meet(Node* node, uint32_t epoch) {
  if (node->epoch == epoch) return false;
  node->epoch = epoch;
  node->uses = 0;
  node->index = 0;
  return true;
}

}  // namespace

uint32_t new_epoch() { return ++next_epoch; }

void walk(std::span<const Tensor> outputs, Walk& out) {
  uint32_t epoch = out.epoch = new_epoch();
  uint32_t values = 0;
  auto number = [&](Node* node, std::vector<Node*>& list) {
    node->index = values;
    values += node->outs;
    list.push_back(node);
  };
  /// Whether the walk goes on behind `node`.
  auto enter = [&](Node* node) {
    if (!meet(node, epoch)) return false;
    if (!is_leaf(*node)) return true;
    number(node, out.leaves);
    return false;
  };
  out.path.clear();
  for (const Tensor& t : outputs) {
    Node* node = t.node();
    if (!enter(node)) continue;
    for (;;) {
      // `index` counts the operands already visited while a node is on the path.
      while (node->index < node->ins) {
        Node* operand = node->inputs()[node->index++].node;
        bool goes_on = enter(operand);
        ++operand->uses;
        if (!goes_on) continue;
        out.path.push_back(node);
        node = operand;
      }
      number(node, out.nodes);
      if (out.path.empty()) break;
      node = out.path.back();
      out.path.pop_back();
    }
  }
}

}  // namespace tn
