#include "ir/watch.h"

#include <mutex>
#include <unordered_map>

#include "base/at_fork.h"

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

Tensor gradient_at(const Node& node) {
  if (!(watch_bits(node) & kHasGrad)) return {};
  std::lock_guard lock(gradients().mutex);
  auto found = gradients().at.find(&node);
  return found == gradients().at.end() ? Tensor() : found->second;
}

Tensor exchange_gradient(Node& node, Tensor gradient) {
  if (!gradient && !(watch_bits(node) & kHasGrad)) return {};
  std::lock_guard lock(gradients().mutex);
  auto& at = gradients().at;
  if (gradient) {
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

}  // namespace tn
