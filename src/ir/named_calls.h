#pragma once
// Calls of ops that are names for others (`arange`, `softmax`): people know what they wrote, nodes
// only what it was expanded to. Nodes are numbered in order on each thread, so that a call is an
// interval of numbers; nodes carry nothing, and who shows no names pays for nothing.
#include <atomic>
#include <string_view>

#include "ir/node.h"

namespace tn {

/// Whether calls are remembered: somebody shows what is computed.
extern std::atomic<bool> calls_are_named;

/// From construction to destruction a call of `op` is expanded. The outermost counts.
class NamedCall {
 public:
  explicit NamedCall(const OpDef& op) {
    if (calls_are_named.load(std::memory_order_relaxed)) begin(op);
  }
  ~NamedCall() {
    if (began_) end();
  }
  NamedCall(const NamedCall&) = delete;

 private:
  void begin(const OpDef& op);
  void end();
  bool began_ = false;
};

/// The call that `node` was recorded in: its first number, the same for all nodes of it, and its
/// name. {0, ""}: none, or forgotten: this thread knows its latest few thousand.
struct CallName {
  uint64_t first = 0;
  std::string_view name = {};
};
CallName call_of(const Node& node);

}  // namespace tn
