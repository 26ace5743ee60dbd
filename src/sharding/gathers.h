#pragma once
// Which values that are divided in memory only are gathered again, and where.
#include "ir/graph.h"
#include "ir/mesh_layout.h"

namespace tn::sharding {

/// A stored value is gathered where ops read it. What is gathered serves later readers only while
/// fewer bytes than its own have been gathered since. So the gathered values that wait for readers
/// have fewer bytes than twice the largest, and most weights are gathered again for the backward
/// pass. Views of a gathered value are made for their readers, or they would hold its memory.
class Gathers {
 public:
  /// `same`: of every value itself, or of a copy the value that it copies. Only such are asked for.
  Gathers(const Graph& graph, const std::vector<Layout>& layouts, const std::vector<Val>& same);

  /// The stored value that `v` is, or is a view of; else kNoVal.
  Val root(Val v) const { return root_[static_cast<size_t>(v)]; }
  /// The op that makes `v`, a view of a stored value; else -1.
  int view(Val v) const { return view_[static_cast<size_t>(v)]; }
  /// Whether the gathered forms of a stored value are to be forgotten now.
  bool forget(Val root);
  /// Whether a view has to be made, for the first time or because its root is gathered again.
  bool renew(Val v);
  /// Whether a stored value that is moved from one layout to another is gathered there.
  bool is_gathered(Val v, const Layout& from, const Layout& to) const;
  /// Counts a gather of a stored value, and returns how many came before it.
  int64_t count(Val v);

 private:
  struct Root {
    int64_t gathers = 0;
    int64_t until = -1;  // all bytes gathered when it was; -1: it is not gathered now
    int64_t times = 0;   // it was forgotten
  };
  int64_t bytes(Val v) const;

  const Graph& graph_;
  const std::vector<Layout>& layouts_;
  std::vector<Val> root_;         // by value
  std::vector<int> view_;         // by value
  std::vector<int64_t> made_at_;  // by value, of views: times of the root, or -1
  std::vector<Root> state_;       // by value
  int64_t gathered_ = 0;          // bytes of all gathers
};

}  // namespace tn::sharding
