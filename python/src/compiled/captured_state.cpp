#include "compiled/captured_state.h"

#include <algorithm>
#include <unordered_map>

#include "base/at_fork.h"
#include "base/error.h"
#include "eval/eval.h"
#include "ir/node.h"

namespace tn::python {

namespace {

/// The same object, or the same tensor: some containers make an object for it each time.
bool same_value(const nb::object& a, const nb::object& b) {
  if (a.is(b)) return true;
  Tensor *x = tensor_in(a.ptr()), *y = tensor_in(b.ptr());
  return x && y && &slot_of(*x) == &slot_of(*y);
}

/// Which leaves of a tree are the objects that were in the same places before.
std::vector<bool> unchanged(const Structure& before, const Leaves& had, const Structure& after,
                            const Leaves& has) {
  std::vector<bool> same(has.size());
  if (before == after) {
    for (size_t i = 0; i < has.size(); ++i) same[i] = same_value(has[i], had[i]);
    return same;
  }
  std::unordered_map<std::string, nb::object> at;
  for (size_t i = 0; i < had.size(); ++i) at[before.path(i)] = had[i];
  for (size_t i = 0; i < has.size(); ++i) {
    auto found = at.find(after.path(i));
    same[i] = found != at.end() && same_value(found->second, has[i]);
  }
  return same;
}

/// Leaves that are kept are none of the tree's.
void leave_out(TensorTree& tree, const std::vector<bool>& kept) {
  size_t count = 0;
  for (size_t k = 0; k < tree.at.size(); ++k) {
    if (kept[tree.at[k]]) continue;
    tree.at[count] = tree.at[k];
    tree.tensors[count++] = tree.tensors[k];
  }
  tree.at.resize(count), tree.tensors.resize(count);
  for (size_t i = 0; i < kept.size(); ++i)
    if (kept[i]) tree.leaves[i] = {};
}

}  // namespace

StateLock::StateLock(const StateTrees& trees) {
  static auto& mutex = *new PerProcess<std::recursive_timed_mutex>;
  if (!trees.inputs.is_valid() && !trees.outputs.is_valid()) return;
  lock_ = std::unique_lock(*mutex, std::defer_lock);
  lock_or_stop(lock_);
}

TracedState::TracedState(const StateTrees& trees, const CallArguments& args, const Leaves& leaves)
    : trees_(trees), args_(args), leaves_(leaves) {
  if (trees.inputs.is_valid()) contents_.remember(trees.inputs.ptr());
  if (trees.outputs.is_valid()) contents_.remember(trees.outputs.ptr());
  if (trees.inputs.is_valid()) {
    args.assign_state(trees.inputs.ptr(), leaves);
    inputs_ = leaves_of(trees.inputs.ptr(), Structure::Look::live);
  }
  if (trees.outputs.is_valid())
    structure_.emplace(trees.outputs.ptr(), outputs_, Structure::Look::live);
}

std::optional<TensorTree> TracedState::after_call() {
  if (trees_.inputs.is_valid()) warn_of_lost_changes();
  if (!structure_) return {};
  TensorTree left(trees_.outputs.ptr(), Numbers::stay_known, Structure::Look::live);
  std::vector<bool> kept = unchanged(*structure_, outputs_, left.structure, left.leaves);
  if (trees_.inputs.is_valid() && *structure_ == left.structure) find_replaced(kept);
  removed_ = removed_keys(*structure_, left.structure);
  leave_out(left, kept);
  return left;
}

void TracedState::find_replaced(const std::vector<bool>& kept) {
  struct Place {
    bool stays = false;
    size_t last = 0;
  };
  std::unordered_map<PyObject*, Place> places;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    Place& place = places[outputs_[i].ptr()];
    place = {place.stays || kept[i], i};
  }
  std::vector<bool> held = held_by_containers(args_.state_structure());
  size_t first = args_.first_of_state();
  for (size_t k = 0; k < args_.tensors.size(); ++k) {
    if (!args_.is_state(k) || !held[args_.key.at[k] - first]) continue;
    auto found = places.find(leaves_[args_.key.at[k]].ptr());
    if (found == places.end() || found->second.stays) continue;
    replaced_.push_back({k, found->second.last});
  }
}

static void warn_of_lost(const std::string& what) {
  warn(format("compile: the function changes {}, and the change is lost: name it in outputs= too",
              what));
}

/// After the trace they are what they were, and later calls do not change them.
void TracedState::warn_of_lost_changes() const {
  Leaves now;
  Structure after(trees_.inputs.ptr(), now, Structure::Look::live);
  std::string lost;
  if (now.size() == inputs_.size()) {
    for (size_t i = 0; i < now.size() && lost.empty(); ++i) {
      auto same = [&](const nb::object& o) { return same_value(o, inputs_[i]); };
      if (!same(now[i]) && std::ranges::none_of(outputs_, same)) lost = after.path(i);
    }
  } else if (!trees_.outputs.is_valid()) {
    lost = " (more or fewer leaves)";
  }
  if (!lost.empty()) warn_of_lost("inputs" + lost);
}

bool TracedState::writes(nb::handle object) const {
  return std::ranges::any_of(outputs_, [&](const nb::object& o) { return o.is(object); });
}

void TracedState::warn_of_lost_change(size_t tensor) const {
  warn_of_lost(args_.key.path(args_.key.at[tensor], {}));
}

}  // namespace tn::python
