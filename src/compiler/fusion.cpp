#include "compiler/fusion.h"

#include <algorithm>
#include <queue>

#include "base/error.h"
#include "compiler/op_cost.h"
#include "ops/tiled.h"

namespace tn {

Folding folding_of(const GraphOp& op) {
  Folding f;
  op.op->reduce_axes(op.attr_data(), f.axes, f.keepdims);
  return f;
}

bool has_loop_form(const Graph& graph, const GraphOp& op) {
  if (op.op == &scalar_leaf) return false;
  bool complex = false;
  for (TypeRef t : graph.in_types(op)) complex |= is_complex(t->dtype);
  if (op.op->is_elementwise())
    return complex ? op.op->complex != nullptr : op.op->scalar != nullptr;
  return op.op->family == Family::reduction && !(complex && op.op->run);
}

int pointwise_nest_cost(const Graph& graph, const GraphOp& op) {
  if (!op.op->lower || op.outs != 1) return -1;
  std::vector<TypeRef> in = graph.in_types(op);
  loop::Lowering probe("probe", in, graph.out_types(op));
  op.op->lower(op.attr_data(), probe);
  const loop::Kernel& k = probe.b.kernel();
  const Shape& shape = probe.out[0]->shape;
  if (static_cast<int>(k.axes.size()) != shape.rank()) return -1;
  Coords at;
  for (int i = 0; i < shape.rank(); ++i) {
    const loop::KernelAxis& axis = k.axes[static_cast<size_t>(i)];
    if (axis.kind != loop::AxisKind::par || axis.extent != shape[i]) return -1;
    at.push_back(probe.b.axis(i));
  }
  PolyId place = probe.flatten(shape, at);
  bool complex = is_complex(probe.out[0]->dtype);
  if (k.stores.size() != (complex ? 2u : 1u)) return -1;
  if (complex) place = probe.b.polys().scale(place, 2);
  bool plain = k.stores[0].index == place && k.stores[0].mask == loop::kNone &&
               k.stores[0].combine == loop::Combine::set;
  return plain ? cost_of(k) : -1;
}

namespace {

constexpr size_t kMaxMembers = 160;
constexpr int kRepeatCost = 30;            // scalar operations worth repeating, reading one tensor
constexpr int kNestCost = 25;              // the same for reading at other coordinates, as `pad`
constexpr int64_t kFewEvaluations = 4096;  // below which repeated work does not matter
constexpr int64_t kLongestRow = 1 << 17;   // elements of a row that stay in the cache
constexpr int64_t kFewestRows = 16;        // below which rows do not keep threads busy
constexpr int64_t kSmallDomain = 1 << 15;

class Fuser {
 public:
  Fuser(const Graph& graph, const std::vector<std::string>& off, Decisions* decisions)
      : graph_(graph),
        decisions_(decisions),
        uses_(graph.types.size()),
        readers_(graph.types.size()),
        returned_(graph.types.size()),
        next_(graph.ops.size()),
        may_fuse_(!std::ranges::count(off, "fuse")),
        may_fold_(may_fuse_ && !std::ranges::count(off, "row-kernels")),
        may_finish_(may_fuse_ && !std::ranges::count(off, "epilogue")) {
    out_.producer.assign(graph.types.size(), -1);
    for (size_t i = 0; i < graph.ops.size(); ++i)
      for (int k = 0; k < graph.ops[i].outs; ++k)
        out_.producer[index(graph.ops[i].out + k)] = static_cast<int>(i);
    for (Val v : graph.outputs) returned_[index(v)] = true;
    cones_ = find_cones(graph, out_.producer);
    for (size_t i = 0; i < graph.ops.size(); ++i) roles_.push_back(find_role(i));
  }

  /// From the last op to the first, so that the readers of a value are placed before its maker.
  Fusion run() {
    for (int i = static_cast<int>(graph_.ops.size()) - 1; i >= 0; --i) place(i);
    merge_siblings();
    order();
    for (Cluster& c : out_.clusters) {
      std::ranges::sort(c.members);
      auto repeated = std::ranges::unique(c.members);
      c.members.erase(repeated.begin(), repeated.end());
    }
    return std::move(out_);
  }

 private:
  enum class Role : uint8_t { number, view, point, nest, fold, alone };
  struct Use {
    int cluster;
    Coords at;
  };

  static size_t index(Val v) { return static_cast<size_t>(v); }
  TypeRef type(Val v) const { return graph_.types[index(v)]; }
  const GraphOp& op_at(int i) const { return graph_.ops[static_cast<size_t>(i)]; }
  Cluster& cluster(int c) { return out_.clusters[static_cast<size_t>(c)]; }
  PolyTable& polys() { return out_.polys; }
  int node(int c) const { return static_cast<int>(graph_.ops.size()) + c; }

  Role role_of(int i) const { return roles_[static_cast<size_t>(i)]; }
  Role find_role(size_t i) {
    const GraphOp& op = graph_.ops[i];
    if (op.op == &scalar_leaf) return Role::number;
    if (op.op->view) return Role::view;
    for (TypeRef t : graph_.in_types(op))
      if (t->elements <= 0) return Role::alone;
    if (type(op.out)->elements <= 0) return Role::alone;
    if (has_loop_form(graph_, op)) return op.op->is_elementwise() ? Role::point : Role::fold;
    int cost = pointwise_nest_cost(graph_, op);
    if (cost < 0) return Role::alone;
    cones_[i].cost = cost;
    return Role::nest;
  }

  void place(int i) {
    switch (role_of(i)) {
      case Role::number:
        return;
      case Role::view:
        return place_view(i);
      case Role::point:
      case Role::nest:
        return place_point(i);
      case Role::fold:
        return place_fold(i);
      case Role::alone:
        return place_alone(i);
    }
  }

  void decide(bool made, const GraphOp& op, std::string what, std::string reason) {
    if (decisions_)
      decisions_->push_back({"fuse", made, std::move(what), std::move(reason), op.loc});
  }

  // Views: readers of the result read the operand, elsewhere.

  void place_view(int i) {
    const GraphOp& op = op_at(i);
    Val from = graph_.in(op)[0];
    bool stored = may_fuse_ && is_wanted_in_rows(op.out) && !keeps_order(op.out);
    if (stored) store_view(i);
    View view = op.op->view(op.attr_data(), *type(from));
    if (type(op.out)->elements > 0 && type(from)->elements > 0)
      for (const Use& use : uses_[index(op.out)])
        add_use(from, use.cluster, through_view(polys(), view, type(from)->shape, use.at));
    if (stored) return;
    for (int reader : readers_[index(op.out)]) add_reader(from, reader);
    if (returned_[index(op.out)]) returned_[index(from)] = true;
  }

  /// Whether somebody needs `v` row-major in memory.
  bool is_wanted_in_rows(Val v) const {
    if (type(v)->elements <= 0) return false;
    auto walks_rows = [&](int node) {
      if (node >= static_cast<int>(graph_.ops.size())) return false;
      const GraphOp& reader = op_at(node);
      return !ops::tiled_form(*reader.op, graph_.in_types(reader));
    };
    return returned_[index(v)] || std::ranges::any_of(readers_[index(v)], walks_rows);
  }

  /// Whether the elements of `v` lie as those of what it is a view of.
  bool keeps_order(Val v) const {
    for (int i = out_.producer[index(v)]; i >= 0 && role_of(i) == Role::view;) {
      const GraphOp& op = op_at(i);
      Val from = graph_.in(op)[0];
      if (op.op->view(op.attr_data(), *type(from)).kind != View::Kind::reshape) return false;
      i = out_.producer[index(from)];
    }
    return true;
  }

  /// The view is written in its own order, by a kernel that computes what it shows.
  void store_view(int i) {
    Val v = op_at(i).out;
    int c = new_cluster(type(v)->elements);
    Coords at = point(polys(), type(v)->shape, par_axis(cluster(c)));
    cluster(c).stores[v] = at;
    cluster(c).members.push_back(i);
    connect(node(c), readers_[index(v)]);
    add_use(v, c, at);
  }

  void add_use(Val v, int c, Coords at) {
    std::vector<Use>& uses = uses_[index(v)];
    auto same = [&](const Use& u) { return u.cluster == c && u.at == at; };
    if (std::ranges::none_of(uses, same)) uses.push_back({c, std::move(at)});
  }
  void add_reader(Val v, int reader) {
    if (!std::ranges::count(readers_[index(v)], reader)) readers_[index(v)].push_back(reader);
  }

  // What reads a value.

  /// The earliest in the graph first.
  std::vector<int> clusters_using(Val v) const {
    std::vector<int> found;
    for (const Use& u : uses_[index(v)])
      if (!std::ranges::count(found, u.cluster)) found.push_back(u.cluster);
    std::ranges::reverse(found);
    return found;
  }
  bool is_outside(Val v) const { return returned_[index(v)] || !readers_[index(v)].empty(); }
  const Coords* only_use(Val v, int c) const {
    const Coords* found = nullptr;
    for (const Use& u : uses_[index(v)]) {
      if (u.cluster != c) continue;
      if (found) return nullptr;
      found = &u.at;
    }
    return found;
  }
  /// Everything that needs `v` in memory when `c` makes it.
  std::vector<int> others(Val v, int c) const {
    std::vector<int> nodes = readers_[index(v)];
    for (int other : clusters_using(v))
      if (other != c) nodes.push_back(node(other));
    return nodes;
  }

  /// Whether node `to` must run after one of `from`.
  bool is_after(const std::vector<int>& from, int to) const {
    std::vector<int> pending = from;
    std::vector<bool> seen(next_.size());
    while (!pending.empty()) {
      int n = pending.back();
      pending.pop_back();
      if (n == to) return true;
      if (seen[static_cast<size_t>(n)]) continue;
      seen[static_cast<size_t>(n)] = true;
      for (int after : next_[static_cast<size_t>(n)]) pending.push_back(after);
    }
    return false;
  }
  void connect(int from, const std::vector<int>& to) {
    for (int n : to) next_[static_cast<size_t>(from)].push_back(n);
  }

  // The flat axes of a cluster.

  PolyId par_axis(const Cluster& c) { return polys().axis(0, polys().constant(c.points)); }
  PolyId red_axis(const Cluster& c) { return polys().axis(1, polys().constant(c.folded)); }
  PolyId place_of(Val v, const Coords& at) { return position(polys(), type(v)->shape, at); }

  int new_cluster(int64_t points) {
    out_.clusters.push_back({.points = points});
    out_.clusters.back().whole = par_axis(out_.clusters.back());
    next_.emplace_back();
    return static_cast<int>(out_.clusters.size()) - 1;
  }

  // Elementwise ops.

  void place_point(int i) {
    Val v = op_at(i).out;
    std::vector<int> users = clusters_using(v);
    bool outside = is_outside(v);
    if (users.empty() && !outside) return;
    if (may_fuse_ && !outside && !users.empty() && can_inline(i, users)) {
      for (int c : users) join(i, c);
      return;
    }
    for (int c : users) {
      if (!may_fuse_) break;
      if (may_fold_ && !cluster(c).folds) seek_rows(i, c);
      if (!can_store(i, c)) continue;
      store(v, c, *only_use(v, c));
      return join(i, c);
    }
    int c = new_cluster(type(v)->elements);
    Coords at = point(polys(), type(v)->shape, par_axis(cluster(c)));
    add_use(v, c, at);
    store(v, c, at);
    join(i, c);
  }

  void store(Val v, int c, const Coords& at) {
    cluster(c).stores[v] = at;
    connect(node(c), others(v, c));
  }

  bool can_inline(int i, const std::vector<int>& users) {
    const Cone& cone = cones_[static_cast<size_t>(i)];
    if (users.size() > 1) {
      bool cheap = role_of(i) == Role::point && cone.leaves.size() <= 1 && cone.cost <= kRepeatCost;
      if (!cheap || (cone.cost >= kMathCost && is_small_for(op_at(i).out, users))) return false;
    }
    return std::ranges::all_of(users, [&](int c) { return fits(i, c); });
  }

  /// Whether writing and reading `v` is nothing beside what its users do.
  bool is_small_for(Val v, const std::vector<int>& users) {
    return std::ranges::all_of(users, [&](int c) {
      return type(v)->elements * 8 <= cluster(c).points * cluster(c).folded;
    });
  }

  /// Whether computing op `i` in cluster `c`, wherever it is used there, is no waste.
  bool fits(int i, int c) {
    if (cluster(c).members.size() >= kMaxMembers) return false;
    const GraphOp& op = op_at(i);
    int64_t evaluations = 0;
    PolyId red = red_axis(cluster(c));
    std::optional<AtomId> folded = polys().as_atom(red);
    for (const Use& u : uses_[index(op.out)]) {
      if (u.cluster != c) continue;
      bool full = !cluster(c).folds;
      for (PolyId p : u.at) full |= folded && polys().contains(p, *folded);
      evaluations += cluster(c).points * (full ? cluster(c).folded : 1);
    }
    int64_t repeated = evaluations - type(op.out)->elements;
    if (repeated <= kFewEvaluations) return true;
    return cones_[static_cast<size_t>(i)].cost < (role_of(i) == Role::nest ? kNestCost : kMathCost);
  }

  /// Whether cluster `c` can compute and write op `i` for all its readers.
  bool can_store(int i, int c) {
    Val v = op_at(i).out;
    const Coords* at = only_use(v, c);
    if (!at || cluster(c).members.size() >= kMaxMembers) return false;
    PolyId place = place_of(v, *at);
    bool full =
        place == cluster(c).whole && type(v)->elements == cluster(c).points * cluster(c).folded;
    bool row = place == par_axis(cluster(c)) && type(v)->elements == cluster(c).points;
    return (full || row) && !is_after(others(v, c), node(c));
  }

  /// Op `i` is computed in `c` wherever its result is used there; its operands are used in turn.
  void join(int i, int c) {
    const GraphOp& op = op_at(i);
    cluster(c).members.push_back(i);
    if (role_of(i) == Role::nest) {
      for (Val v : graph_.in(op)) add_reader(v, node(c));
      return;
    }
    for (const Use& u : std::vector<Use>(uses_[index(op.out)])) {
      if (u.cluster != c) continue;
      for (Val v : graph_.in(op))
        add_use(v, c, broadcast_point(polys(), type(v)->shape, u.at, type(op.out)->shape));
    }
  }

  // Reductions.

  void place_fold(int i) {
    const GraphOp& op = op_at(i);
    Val v = op.out;
    std::vector<int> users = clusters_using(v);
    if (users.empty() && !is_outside(v)) return;
    for (int c : users) {
      if (!may_fold_ || !can_fold(i, c)) continue;
      if (is_outside(v) || users.size() > 1) store(v, c, *only_use(v, c));
      return join_fold(i, c);
    }
    int c = new_cluster(type(v)->elements);
    Coords at = point(polys(), type(v)->shape, par_axis(cluster(c)));
    start_folding(i, c);
    add_use(v, c, at);
    store(v, c, at);
    join_fold(i, c);
  }

  int64_t folded_elements(const GraphOp& op) const {
    return type(graph_.in(op)[0])->elements / type(op.out)->elements;
  }

  /// The points of `c` become rows, with the elements that op `i` folds.
  void start_folding(int i, int c) {
    const GraphOp& op = op_at(i);
    cluster(c).folds = true;
    cluster(c).folded = folded_elements(op);
    cluster(c).whole = operand_place(op, c);
  }

  /// The position of the operand's elements of row p and folded point r.
  PolyId operand_place(const GraphOp& op, int c) {
    Coords row = point(polys(), type(op.out)->shape, par_axis(cluster(c)));
    return place_of(graph_.in(op)[0], operand_point(op, c, row));
  }
  Coords operand_point(const GraphOp& op, int c, const Coords& row) {
    Folding f = folding_of(op);
    return reduced_point(polys(), type(graph_.in(op)[0])->shape, f.axes, f.keepdims, row,
                         red_axis(cluster(c)));
  }

  void join_fold(int i, int c) {
    const GraphOp& op = op_at(i);
    cluster(c).members.push_back(i);
    const Coords row = *only_use(op.out, c);
    add_use(graph_.in(op)[0], c, operand_point(op, c, row));
  }

  /// Whether cluster `c`, which reads the result of fold `i`, can fold by itself.
  bool can_fold(int i, int c) {
    const GraphOp& op = op_at(i);
    const Coords* at = only_use(op.out, c);
    if (!at || cluster(c).hero >= 0 || cluster(c).members.size() >= kMaxMembers) return false;
    if (is_after(others(op.out, c), node(c))) return false;
    int64_t rows = type(op.out)->elements, folded = folded_elements(op);
    bool at_rows = place_of(op.out, *at) == par_axis(cluster(c));
    if (cluster(c).folds)
      return at_rows && rows == cluster(c).points && folded == cluster(c).folded;
    if (at_rows && rows == cluster(c).points) {  // only rows are wanted
      start_folding(i, c);
      return true;
    }
    return split_into_rows(i, op.out, c);
  }

  /// Op `i` may be a value per row of `c`, made from a fold of its elements: then the rows are to
  /// be seen before the fold is met.
  void seek_rows(int i, int c) {
    Val v = op_at(i).out;
    if (!only_use(v, c) || cluster(c).hero >= 0 || type(v)->elements >= cluster(c).points) return;
    int fold = fold_behind(i, type(v)->elements, cluster(c).points);
    if (fold >= 0) split_into_rows(fold, v, c);
  }

  /// A fold of `whole` elements to `rows`, of which op `i` is made by elementwise ops.
  int fold_behind(int i, int64_t rows, int64_t whole) const {
    constexpr int kMostOps = 16;
    std::vector<int> pending{i};
    for (int seen = 0; !pending.empty() && seen < kMostOps; ++seen) {
      int at = pending.back();
      const GraphOp& op = op_at(at);
      pending.pop_back();
      if (role_of(at) == Role::fold) {
        if (type(op.out)->elements == rows && type(graph_.in(op)[0])->elements == whole) return at;
        continue;
      }
      if (role_of(at) != Role::point && role_of(at) != Role::view) continue;
      for (Val v : graph_.in(op))
        if (int made_by = out_.producer[index(v)]; made_by >= 0) pending.push_back(made_by);
    }
    return -1;
  }

  /// Rewrites the flat axis of `c` as rows and elements of fold `i`, if `by_row` is used by row.
  bool split_into_rows(int i, Val by_row, int c) {
    const GraphOp& op = op_at(i);
    const Type& operand = *type(graph_.in(op)[0]);
    int64_t rows = type(op.out)->elements, folded = folded_elements(op);
    int64_t whole = cluster(c).points;
    if (whole != rows * folded || folded == 1) return false;
    std::string what = format("{} into its reader", op.op->name);
    if (!folding_of(op).axes.has(operand.rank() - 1)) {
      decide(false, op, what, "the last axis is not reduced: rows would not be contiguous");
      return false;
    }
    if (folded > kLongestRow || (rows < kFewestRows && whole > kSmallDomain)) {
      decide(false, op, what, format("{} rows of {} elements do not suit one pass", rows, folded));
      return false;
    }
    Cluster split = cluster(c);
    split.points = rows, split.folded = folded, split.folds = true;
    Cluster before = std::exchange(cluster(c), split);
    PolyId place = operand_place(op, c);
    PolyTable::AtomMap map{{*polys().as_atom(par_axis(before)), place}};
    Coords row;
    for (PolyId p : *only_use(by_row, c)) row.push_back(polys().substitute(p, map));
    if (place_of(by_row, row) != par_axis(cluster(c))) {
      cluster(c) = std::move(before);
      decide(false, op, what, "its reader does not go through it row by row");
      return false;
    }
    cluster(c).whole = place;
    auto move = [&](Coords& at) {
      for (PolyId& p : at) p = polys().substitute(p, map);
    };
    for (auto& [v, at] : cluster(c).stores) move(at);
    for (std::vector<Use>& uses : uses_)
      for (Use& u : uses)
        if (u.cluster == c) move(u.at);
    decide(true, op, what, format("{} rows of {} elements stay in the cache", rows, folded));
    return true;
  }

  // Everything else.

  void place_alone(int i) {
    const GraphOp& op = op_at(i);
    int home = i;
    if (int c = finisher(op); c >= 0) {
      cluster(c).hero = i;
      home = node(c);
      if (is_outside(op.out) || clusters_using(op.out).size() > 1)
        store(op.out, c, *only_use(op.out, c));
    } else {
      for (int k = 0; k < op.outs; ++k) connect(i, others(op.out + k, -1));
    }
    for (Val v : graph_.in(op)) add_reader(v, home);
  }

  /// The cluster that works on the blocks of this op's result while they are in the cache.
  int finisher(const GraphOp& op) {
    if (!may_finish_ || op.outs != 1 || !ops::tiled_form(*op.op, graph_.in_types(op))) return -1;
    if (type(op.out)->elements <= 0) return -1;
    for (int c : clusters_using(op.out)) {
      const Coords* at = only_use(op.out, c);
      if (!at || cluster(c).folds || cluster(c).hero >= 0) continue;
      if (place_of(op.out, *at) != par_axis(cluster(c)) ||
          type(op.out)->elements != cluster(c).points)
        continue;
      if (is_after(others(op.out, c), node(c))) continue;
      decide(true, op,
             format("{} with the {} ops after it", op.op->name, cluster(c).members.size()),
             "they work on its blocks while these are in the cache");
      return c;
    }
    return -1;
  }

  // Clusters over the same points that read the same tensor become one.

  void merge_siblings() {
    if (!may_fuse_) return;
    for (Val v = 0; v < graph_.values(); ++v) {
      std::vector<int> users = clusters_using(v);
      for (size_t a = 0; a < users.size(); ++a)
        for (size_t b = a + 1; b < users.size(); ++b)
          if (users[b] >= 0 && users[a] >= 0 && are_siblings(v, users[a], users[b])) {
            merge(users[a], users[b]);
            users[b] = -1;
          }
    }
  }

  bool are_siblings(Val v, int a, int b) {
    const Cluster &x = cluster(a), &y = cluster(b);
    bool same = x.points == y.points && x.folded == y.folded && x.folds == y.folds &&
                x.whole == y.whole && x.hero < 0 && y.hero < 0;
    if (!same || x.members.size() + y.members.size() > kMaxMembers) return false;
    if (type(v)->elements * 2 < x.points * x.folded) return false;  // little is saved
    return !is_after(next_[static_cast<size_t>(node(a))], node(b)) &&
           !is_after(next_[static_cast<size_t>(node(b))], node(a)) &&
           !std::ranges::count(next_[static_cast<size_t>(node(a))], node(b)) &&
           !std::ranges::count(next_[static_cast<size_t>(node(b))], node(a));
  }

  void merge(int a, int b) {
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
    for (std::vector<Use>& uses : uses_)
      for (Use& u : uses)
        if (u.cluster == b) u.cluster = a;
    for (std::vector<int>& readers : readers_)
      for (int& r : readers)
        if (r == node(b)) r = node(a);
    decide(true, op_at(c.members.front()),
           format("{} and {} ops in one kernel", c.members.size() - gone.members.size(),
                  gone.members.size()),
           "they go over the same points of the same tensor");
  }

  // The order of what runs: earliest in the graph first, where there is a choice.

  void order() {
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
    std::priority_queue<std::pair<int, int>, std::vector<std::pair<int, int>>, std::greater<>>
        ready;
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

  const Graph& graph_;
  Decisions* decisions_;
  Fusion out_;
  std::vector<Role> roles_;                // by op
  std::vector<Cone> cones_;                // by op
  std::vector<std::vector<Use>> uses_;     // by value
  std::vector<std::vector<int>> readers_;  // by value: nodes that need it in memory
  std::vector<bool> returned_;             // by value
  std::vector<std::vector<int>> next_;     // by node: ops, then clusters
  bool may_fuse_, may_fold_, may_finish_;
};

}  // namespace

Fusion fuse(const Graph& graph, const std::vector<std::string>& off, Decisions* decisions) {
  return Fuser(graph, off, decisions).run();
}

}  // namespace tn
