// Clusters that become one, and the order of what runs.
#include <algorithm>
#include <queue>

#include "base/error.h"
#include "compiler/fuser.h"

namespace tn {

void Fuser::merge_siblings() {
  if (!may_fuse_ || out_.immediate) return;
  for (Val v = 0; v < graph_.values(); ++v) merge_siblings(v, clusters_using(v));
}

void Fuser::merge_siblings(Val v, std::vector<int> users) {
  for (size_t a = 0; a < users.size(); ++a)
    for (size_t b = a + 1; b < users.size(); ++b)
      if (users[b] >= 0 && users[a] >= 0 && are_siblings(v, users[a], users[b])) {
        merge(users[a], users[b]);
        users[b] = -1;
      }
}

bool Fuser::is_late(const Cluster& c) const {
  auto late = [&](int i) { return late_[static_cast<size_t>(i)]; };
  return !late_.empty() && std::ranges::all_of(c.members, late);
}

bool Fuser::are_siblings(Val v, int a, int b) {
  const Cluster &x = cluster(a), &y = cluster(b);
  if (is_late(x) || is_late(y)) return false;
  bool same = identical(x.points, y.points) && identical(x.folded, y.folded) &&
              x.folds == y.folds && x.whole == y.whole && x.hero < 0 && y.hero < 0;
  if (!same || x.members.size() + y.members.size() > kMaxMembers) return false;
  if (likely(elements(v)) * 2 < likely(x.points * x.folded)) return false;  // little is saved
  return !is_after(next_[static_cast<size_t>(node(a))], node(b)) &&
         !is_after(next_[static_cast<size_t>(node(b))], node(a)) &&
         !std::ranges::count(next_[static_cast<size_t>(node(a))], node(b)) &&
         !std::ranges::count(next_[static_cast<size_t>(node(b))], node(a));
}

void Fuser::merge(int a, int b) {
  Cluster gone = std::move(cluster(b));
  cluster(b) = Cluster{};
  cluster(b).points = 0;
  Cluster& c = cluster(a);
  c.members.insert(c.members.end(), gone.members.begin(), gone.members.end());
  c.stores.merge(gone.stores);
  connect(node(a), next_[static_cast<size_t>(node(b))]);
  next_[static_cast<size_t>(node(b))].clear();
  for (std::vector<int>& after : next_)
    for (int& n : after)
      if (n == node(b)) n = node(a);
  for (Val v = 0; v < graph_.values(); ++v) {
    std::vector<Use>& uses = uses_[index(v)];
    std::vector<Use> moved;
    for (Use& u : uses)
      if (u.cluster == b) moved.push_back(std::move(u));
    if (moved.empty()) continue;
    std::erase_if(uses, [&](const Use& u) { return u.cluster == b; });
    for (Use& u : moved) add_use(v, a, std::move(u.at));
  }
  for (std::vector<int>& readers : readers_)
    for (int& r : readers)
      if (r == node(b)) r = node(a);
  decide(true, op_at(c.members.front()),
         format("{} and {} ops in one kernel", c.members.size() - gone.members.size(),
                gone.members.size()),
         "they go over the same points of the same tensor");
}

void Fuser::order() {
  size_t ops = graph_.ops.size();
  std::vector<int> waits(next_.size()), key(next_.size(), -1);
  for (size_t i = 0; i < ops; ++i)
    if (roles_[i] == Role::alone) key[i] = static_cast<int>(i);
  for (size_t c = 0; c < out_.clusters.size(); ++c) {
    const Cluster& one = out_.clusters[c];
    if (one.members.empty()) continue;
    key[ops + c] = *std::ranges::max_element(one.members);
    if (one.hero >= 0) key[static_cast<size_t>(one.hero)] = -1;
  }
  for (size_t n = 0; n < next_.size(); ++n)
    if (key[n] >= 0)
      for (int after : next_[n]) ++waits[static_cast<size_t>(after)];
  std::priority_queue<std::pair<int, int>, std::vector<std::pair<int, int>>, std::greater<>> ready;
  for (size_t n = 0; n < next_.size(); ++n)
    if (key[n] >= 0 && waits[n] == 0) ready.push({key[n], static_cast<int>(n)});
  while (!ready.empty()) {
    int n = ready.top().second;
    ready.pop();
    out_.order.push_back(n < static_cast<int>(ops) ? n : ~(n - static_cast<int>(ops)));
    for (int after : next_[static_cast<size_t>(n)])
      if (--waits[static_cast<size_t>(after)] == 0)
        ready.push({key[static_cast<size_t>(after)], after});
  }
  size_t expected = static_cast<size_t>(std::ranges::count_if(key, [](int k) { return k >= 0; }));
  invariant(out_.order.size() == expected, "fusion made a cycle: {} of {} steps can run",
            out_.order.size(), expected);
}

}  // namespace tn
