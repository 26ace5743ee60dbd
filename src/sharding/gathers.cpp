#include "sharding/gathers.h"

#include <algorithm>
#include <utility>

namespace tn::sharding {

/// Views of views that are made for their readers: making one calls the partition again.
constexpr int kMostViews = 8;

Gathers::Gathers(const Graph& graph, const std::vector<Layout>& layouts,
                 const std::vector<Val>& same)
    : graph_(graph),
      layouts_(layouts),
      root_(graph.types.size(), kNoVal),
      view_(graph.types.size(), -1),
      made_at_(graph.types.size(), -1),
      state_(graph.types.size()) {
  for (Val v = 0; v < graph.values(); ++v)
    if (layouts[static_cast<size_t>(v)].stored) root_[static_cast<size_t>(v)] = v;
  std::vector<int> depth(graph.types.size());
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const GraphOp& op = graph.ops[i];
    if (op.op == &scalar_leaf || op.op->family != Family::movement || op.ins != 1) continue;
    auto from = static_cast<size_t>(same[static_cast<size_t>(graph.in(op)[0])]);
    auto to = static_cast<size_t>(op.out);
    if (same[to] != op.out) continue;
    if (root_[from] == kNoVal || root_[to] != kNoVal || depth[from] == kMostViews) continue;
    root_[to] = root_[from], view_[to] = static_cast<int>(i), depth[to] = depth[from] + 1;
  }
}

int64_t Gathers::bytes(Val v) const {
  TypeRef type = graph_.types[static_cast<size_t>(v)];
  return type->elements < 0 ? 0 : type->bytes();
}

bool Gathers::forget(Val root) {
  Root& one = state_[static_cast<size_t>(root)];
  if (one.until < 0 || gathered_ - one.until < std::max<int64_t>(bytes(root), 1)) return false;
  one.until = -1, ++one.times;
  return true;
}

bool Gathers::renew(Val v) {
  auto at = static_cast<size_t>(v);
  if (view_[at] < 0) return false;
  int64_t times = state_[static_cast<size_t>(root_[at])].times;
  return std::exchange(made_at_[at], times) != times;
}

bool Gathers::is_gathered(Val v, const Layout& from, const Layout& to) const {
  if (root(v) != v) return false;
  for (int t = 0; t < static_cast<int>(from.digits.size()); ++t)
    if (layouts_[static_cast<size_t>(v)].is_stored(t) && from[t] && !to[t]) return true;
  return false;
}

int64_t Gathers::count(Val v) {
  Root& one = state_[static_cast<size_t>(v)];
  gathered_ += bytes(v);
  one.until = gathered_;
  return one.gathers++;
}

}  // namespace tn::sharding
