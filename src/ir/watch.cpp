#include "ir/watch.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "base/at_fork.h"
#include "ir/walk.h"

namespace tn {

namespace {

/// Gradients by the leaf they belong to. Nothing is released under the lock.
struct Gradients {
  std::mutex mutex;
  std::unordered_map<const Node*, Tensor> at;
};

Gradients& gradients() {
  static auto& only = *[] {
    auto* made = new Gradients;
    guarded_at_fork(made->mutex, 12);
    return made;
  }();
  return only;
}

}  // namespace

bool lead_to_lost_leaves(std::span<const Tensor> operands) {
  return inherited && std::ranges::any_of(operands, [](const Tensor& t) {
           return (watch_bits(*t.node()) & kInherited) == kOnPath;
         });
}

bool lead_to_leaves(std::span<const Tensor> operands) {
  return inherited && std::ranges::any_of(operands, [](const Tensor& t) {
           return watch_bits(*t.node()) & kOnPath;
         });
}

void mark_blocked(std::span<const Tensor> results) {
  for (const Tensor& t : results)
    if (t.defined() && !t.node()->op && is_inexact(t.dtype())) set_watch_bits(*t.node(), kOnPath);
}

void mark_replaced(Node& leaf) {
  std::lock_guard lock(walk_mutex());
  raise_sequence();
  leaf.sequence = next_sequence();
  clear_watch_bits(leaf, kLeaf | kInherited);
  set_watch_bits(leaf, kReplaced);
}

Tensor gradient_at(const Node& node) {
  if (!(watch_bits(node) & kHasGrad)) return {};
  std::lock_guard lock(gradients().mutex);
  auto found = gradients().at.find(&node);
  return found == gradients().at.end() ? Tensor() : found->second;
}

Tensor exchange_gradient(Node& node, Tensor gradient) {
  if (!gradient.defined() && !(watch_bits(node) & kHasGrad)) return {};
  std::lock_guard lock(gradients().mutex);
  auto& at = gradients().at;
  if (gradient.defined()) {
    set_watch_bits(node, kHasGrad);
    std::swap(at[&node], gradient);
  } else if (auto found = at.extract(&node)) {
    clear_watch_bits(node, kHasGrad);
    gradient = std::move(found.mapped());
  }
  return gradient;
}

Tensor offer_gradient(Node& node, const Tensor& gradient) {
  std::lock_guard lock(gradients().mutex);
  auto [at, added] = gradients().at.try_emplace(&node, gradient);
  if (!added) return at->second;
  set_watch_bits(node, kHasGrad);
  return {};
}

void forget_lost_gradients() {
  Tensors lost;  // released when the locks are
  std::scoped_lock lock(walk_mutex(), gradients().mutex);
  auto& at = gradients().at;
  uint32_t epoch = new_epoch();
  std::vector<Node*> found;
  auto meet = [&](Node* node) {
    if (node->epoch == epoch) return;
    node->epoch = epoch, node->uses = 0;
    found.push_back(node);
  };
  for (auto& [leaf, gradient] : at) meet(gradient.node());
  for (size_t i = 0; i < found.size(); ++i)
    for (int k = 0; k < found[i]->ins; ++k)
      if (Node* operand = found[i]->inputs()[k].node) meet(operand), ++operand->uses;
  for (auto entry = at.begin(); entry != at.end();) {
    Node* leaf = const_cast<Node*>(entry->first);
    bool held = leaf->epoch != epoch || leaf->refs.load(std::memory_order_acquire) > leaf->uses;
    if (!held) {
      clear_watch_bits(*leaf, kHasGrad);
      lost.push_back(std::move(entry->second));
    }
    entry = held ? std::next(entry) : at.erase(entry);
  }
}

}  // namespace tn
