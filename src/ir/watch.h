#pragma once
// Watching: which recorded ops `backward()` walks over, and where gradients are kept.
//
// A *leaf* is a tensor whose gradient is wanted: one with `requires_grad`, or a parameter of a
// module that was called. What is recorded from it is on a path to it, unless a `NoGrad` is in
// force. Behind leaves with `requires_grad` nodes keep their operands when they are computed, so
// that a loss may be looked at before `backward()`; behind the others, only what is pending can be
// walked over, and nothing is kept alive for it.
#include "ir/node.h"

namespace tn {

/// Bits of Node::watched.
enum Watch : uint8_t {
  kOnPath = 1,     // a leaf, or recorded from one
  kKept = 2,       // behind it is a leaf with requires_grad: keeps its operands
  kLeaf = 4,       // its gradient is wanted; walks end here
  kHasGrad = 8,    // there is a gradient to let go of when the node dies
  kSpent = 16,     // a backward() has been here and let go of what it needs
  kReplaced = 32,  // was a leaf until its tensor got another value
  kRefused = 64    // the user wants no gradient of it: modules do not make it a leaf
};
/// Bits that a node inherits from its operands.
inline constexpr uint8_t kInherited = kOnPath | kKept;

/// The bits that nodes recorded on this thread inherit: none while gradients are disabled.
inline thread_local uint8_t inherited = kInherited;

// Threads may change the bits of a node that others record from.
inline uint8_t watch_bits(const Node& node) {
  return std::atomic_ref(const_cast<Node&>(node).watched).load(std::memory_order_relaxed);
}
inline void set_watch_bits(Node& node, uint8_t bits) {
  std::atomic_ref(node.watched).fetch_or(bits, std::memory_order_relaxed);
}
inline void clear_watch_bits(Node& node, uint8_t bits) {
  std::atomic_ref(node.watched).fetch_and(static_cast<uint8_t>(~bits), std::memory_order_relaxed);
}
/// Whether it is a leaf because `requires_grad` was set: a variable.
inline bool is_variable(const Node& node) {
  return (watch_bits(node) & (kLeaf | kKept)) == (kLeaf | kKept);
}

/// Whether gradients are wanted behind one of `operands` for which nothing is kept when it is
/// computed.
bool lead_to_lost_leaves(std::span<const Tensor> operands);
/// Whether there is a leaf behind one of them.
bool lead_to_leaves(std::span<const Tensor> operands);
/// Marks what was computed at once from such: backward() says that it cannot go on there, instead
/// of giving no gradients.
void mark_blocked(std::span<const Tensor> results);

/// Makes a leaf a plain value because its tensor has another one now. What is recorded from it
/// later has higher numbers than it gets here; what was recorded before has lost a leaf.
void mark_replaced(Node& leaf);
/// Whether `user` was recorded from `operand` when that was a leaf which it is not any more.
inline bool has_lost_leaf(const Node& user, const Node& operand) {
  return watch_bits(operand) & kReplaced && user.sequence < operand.sequence;
}

/// The gradient that was left at a node, or null.
Tensor gradient_at(const Node& node);
/// Leaves another one there (null: none) and returns the former.
Tensor exchange_gradient(Node& node, Tensor gradient);
/// Releases unreachable gradients: pending ones whose leaves are held only by the graph that would
/// compute them.
void forget_lost_gradients();
/// Leaves one there unless there is one already, which is returned instead.
Tensor offer_gradient(Node& node, const Tensor& gradient);

}  // namespace tn
