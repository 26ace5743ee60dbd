#include "ir/walk.h"

#include "base/at_fork.h"

namespace tn {

std::mutex& walk_mutex() {
  static auto& mutex = guarded_at_fork(*new std::mutex, 2);
  return mutex;
}

bool is_leaf(const Node& node) { return !node.is_pending(); }

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
  thread_local std::vector<Node*> stack;
  stack.clear();
  auto enter = [&](Node* node) {
    if (!meet(node, epoch)) return;
    if (is_leaf(*node)) {
      node->index = values;
      values += node->outs;
      out.leaves.push_back(node);
    } else {
      stack.push_back(node);
    }
  };
  for (const Tensor& t : outputs) {
    enter(t.node());
    // `index` counts the operands already visited while a node is on the stack.
    while (!stack.empty()) {
      Node* node = stack.back();
      if (node->index < node->ins) {
        Node* operand = node->inputs()[node->index++].node;
        enter(operand);
        ++operand->uses;
        continue;
      }
      stack.pop_back();
      node->index = values;
      values += node->outs;
      out.nodes.push_back(node);
    }
  }
}

}  // namespace tn
