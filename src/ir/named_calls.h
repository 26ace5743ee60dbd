#pragma once
// Calls of ops that are names for others (`arange`, `softmax`): people know what they wrote, nodes
// only what it was expanded to. Nodes are numbered in order on each thread, so that a call is an
// interval of numbers; nodes carry nothing.
#include <string_view>

#include "ir/node.h"
#include "tenon/error.h"

namespace tn {

/// The name by which users call an op: NAME of one that is found by the alias "torch.NAME".
std::string_view user_name(const OpDef& op);

/// An error of an op that was recorded earlier. The op that evaluates it does not rename the error.
class RecordedError : public UserError {
 public:
  using UserError::UserError;
};

/// From construction to destruction a call by `name`, a constant, is expanded. The outermost
/// counts.
class NamedCall {
 public:
  explicit NamedCall(std::string_view name);
  ~NamedCall() {
    if (began_) end();
  }
  NamedCall(const NamedCall&) = delete;

 private:
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
