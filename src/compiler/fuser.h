#pragma once
// Fuser: the state of fusion while ops are placed, from the last to the first.
#include "compiler/fusion.h"
#include "compiler/op_cost.h"

namespace tn {

class Fuser {
 public:
  Fuser(const Graph& graph, const CompileOptions& options, std::span<const Binding> sizes,
        Decisions* decisions, const std::vector<bool>& late);

  /// From the last op to the first, so that the readers of a value are placed before its maker.
  Fusion run();

 private:
  static constexpr size_t kMaxMembers = 160;  // of a cluster
  enum class Role : uint8_t { number, view, point, nest, fold, alone };
  struct Use {
    int cluster;
    Coords at;
  };

  static size_t index(Val v) { return static_cast<size_t>(v); }
  TypeRef type(Val v) const { return graph_.types[index(v)]; }
  Dim elements(Val v) const { return elements_of(*type(v)); }
  bool is_empty(Val v) const { return type(v)->elements == 0; }
  /// Where only the cost depends on it.
  int64_t likely(Dim size) const { return size.is_const() ? size.raw : evaluate(size, sizes_); }
  const GraphOp& op_at(int i) const { return graph_.ops[static_cast<size_t>(i)]; }
  Cluster& cluster(int c) { return out_.clusters[static_cast<size_t>(c)]; }
  PolyTable& polys() { return *out_.polys; }
  int node(int c) const { return static_cast<int>(graph_.ops.size()) + c; }

  Role role_of(int i) const { return roles_[static_cast<size_t>(i)]; }
  Role find_role(size_t i);

  void place(int i);

  void decide(bool made, const GraphOp& op, std::string what, std::string reason);

  // Views: readers of the result read the operand, elsewhere.

  void place_view(int i);
  void see_through(int i);

  /// Whether some reader needs `v` row-major in memory.
  bool is_wanted_in_rows(Val v) const;

  /// Whether the elements of `v` lie as those of what it is a view of.
  bool keeps_order(Val v) const;

  /// The view is written in its own order, by a kernel that computes what it shows.
  void store_view(int i);

  void add_use(Val v, int c, Coords at);
  void add_reader(Val v, int reader);

  // What reads a value.

  /// The earliest in the graph first.
  std::vector<int> clusters_using(Val v) const;
  void find_users(Val v, std::vector<int>& found) const;
  bool is_outside(Val v) const { return returned_[index(v)] || !readers_[index(v)].empty(); }
  const Coords* only_use(Val v, int c) const;
  /// Everything that needs `v` in memory when `c` makes it.
  std::vector<int> others(Val v, int c) const;

  /// Whether node `to` must run after one of `from`.
  bool is_after(const std::vector<int>& from, int to) const;
  void connect(int from, const std::vector<int>& to);

  // The flat axes of a cluster.

  PolyId par_axis(const Cluster& c) { return polys().axis(0, polys().from_dim(c.points)); }
  PolyId red_axis(const Cluster& c) { return polys().axis(1, polys().from_dim(c.folded)); }
  PolyId place_of(Val v, const Coords& at) { return position(polys(), type(v)->shape, at); }

  int new_cluster(Dim points);
  /// Where the points of `c` are in `v`, which has as many elements.
  Coords points_in(Val v, int c);
  Coords operand_at(Val v, const GraphOp& op, const Coords& at);

  // Elementwise ops.

  void place_point(int i);

  void report_why_written(int i);

  void store(Val v, int c, const Coords& at);

  /// Whether computing op `i` in cluster `c` keeps two operands alive across library calls, where
  /// one result would do: sums of products that are added up as they come.
  bool holds_operands(int i, int c) const;

  bool can_inline(int i, const std::vector<int>& users);

  /// Whether writing and reading `v` is nothing beside what its users do.
  bool is_small_for(Val v, const std::vector<int>& users);

  /// Whether computing op `i` in cluster `c`, wherever it is used there, is no waste.
  bool fits(int i, int c);

  /// Whether cluster `c` can compute and write op `i` for all its readers.
  bool can_store(int i, int c);

  /// Whether those that read `v` in memory would wait for folds of `c` that nothing else waits for,
  /// where that takes longer than reading `v` once more.
  bool would_delay(Val v, int c);

  /// Op `i` is computed in `c` wherever its result is used there; its operands are used in turn.
  void join(int i, int c);

  // Reductions.

  void place_fold(int i);

  Dim folded_elements(const GraphOp& op) const;

  /// The points of `c` become rows, with the elements that op `i` folds.
  void start_folding(int i, int c);

  /// The position of the operand's elements of row p and folded point r.
  PolyId operand_place(const GraphOp& op, int c);
  Coords operand_point(const GraphOp& op, int c, const Coords& row);

  void join_fold(int i, int c);

  /// Merges clusters that need fold `i` and go over the rows that it folds: one of them would
  /// compute it, and the others would wait.
  void merge_readers(int i);

  /// Whether the elements that are folded lie side by side.
  bool folds_last_axis(const GraphOp& op) const;

  /// Whether cluster `c`, which reads the result of fold `i`, can fold by itself.
  bool can_fold(int i, int c);

  /// Op `i` may be a value per row of `c`, made from a fold of its elements: then the rows are to
  /// be seen before the fold is met.
  void seek_rows(int i, int c);

  /// A fold of `whole` elements to `rows`, of which op `i` is made by elementwise ops.
  int fold_behind(int i, Dim rows, Dim whole) const;

  /// Rewrites the flat axis of `c` as rows and elements of fold `i`, if `by_row` is used by row.
  bool split_into_rows(int i, Val by_row, int c);

  // What is computed at once (fusion_immediate.cpp).

  bool can_inline_now(int i, const std::vector<int>& users) const;
  bool can_store_now(int i, int c) const;
  /// Whether op `i` can be computed in `c` only: it visits the same points.
  bool fits_now(int i, int c) const;
  bool is_cheap_to_repeat(const GraphOp& op) const;
  /// Where members of `c` read what is computed elsewhere.
  void find_reads(Cluster& c) const;

  // Everything else.

  void place_alone(int i);

  /// The cluster that works on the blocks of this op's result while they are in the cache.
  int finisher(const GraphOp& op);

  /// A finished result that can be made where the sums of the hero are.
  Val find_sums(const Cluster& c) const;

  // Clusters over the same points that read the same tensor become one.

  void merge_siblings();
  void merge_siblings(Val v, std::vector<int> users);

  bool are_siblings(Val v, int a, int b);

  /// Whether all that the cluster computes is for those that read it later.
  bool is_late(const Cluster& c) const;

  void merge(int a, int b);

  // The order of what runs: earliest in the graph first, where there is a choice.

  void order();

  const Graph& graph_;
  std::span<const Binding> sizes_;
  const Target target_;
  const TargetCosts& costs_;
  Decisions* decisions_;
  const std::vector<bool>& late_;  // by op; empty: none is
  Fusion out_;
  std::vector<Role> roles_;                // by op
  std::vector<int> libraries_;             // by op: library calls up to it
  std::vector<Cone> cones_;                // by op
  std::vector<std::vector<Use>> uses_;     // by value
  std::vector<std::vector<int>> readers_;  // by value: nodes that need it in memory
  std::vector<bool> returned_;             // by value
  std::vector<std::vector<int>> next_;     // by node: ops, then clusters
  std::vector<int> users_;                 // of the op being placed
  bool may_fuse_, may_fold_, may_finish_, may_nest_;
};

}  // namespace tn
