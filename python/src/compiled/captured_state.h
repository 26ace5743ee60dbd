#pragma once
// State: containers that a compiled function reads and writes besides its arguments.
#include <mutex>

#include "compiled/call_arguments.h"
#include "trees/live_trees.h"
#include "trees/tensor_tree.h"

namespace tn::python {

/// Trees of containers that a function reads and writes besides its arguments, or null.
struct StateTrees {
  nb::object inputs = {}, outputs = {};
};

/// Calls with a state happen one after the other: functions may share what it holds.
class StateLock {
 public:
  explicit StateLock(const StateTrees& trees);

 private:
  std::unique_lock<std::recursive_timed_mutex> lock_;
};

/// The containers while a function is traced: they hold its parameters, and in the end what they
/// held before.
class TracedState {
 public:
  /// `leaves` are those of the arguments and the inputs, with parameters for tensors.
  TracedState(const StateTrees& trees, const CallArguments& args, const Leaves& leaves);

  /// What the function left in the outputs, if there are any; null for leaves that it left alone.
  /// Warns of changes that are lost because they are in inputs only.
  std::optional<TensorTree> after_call();
  /// The tensors among the arguments that outputs always replace, each with one of the leaves of
  /// outputs that replace it: they are not read again.
  struct Replaced {
    size_t tensor, leaf;
  };
  const std::vector<Replaced>& replaced() const { return replaced_; }
  /// Whether changes of an object in inputs last, because it is in outputs too.
  bool writes(nb::handle object) const;
  void warn_of_lost_change(size_t tensor) const;
  /// By node of the outputs: keys that the function took away; see removed_keys.
  const std::vector<nb::object>& removed() const { return removed_; }

 private:
  void warn_of_lost_changes() const;
  void find_replaced(const std::vector<bool>& kept);

  const StateTrees& trees_;
  const CallArguments& args_;
  const Leaves& leaves_;
  Contents contents_;
  Leaves inputs_, outputs_;  // what they held when the function began
  std::optional<Structure> structure_;
  std::vector<Replaced> replaced_;
  std::vector<nb::object> removed_;
};

}  // namespace tn::python
