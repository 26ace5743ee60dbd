// Grows clusters: which op joins which, and what a cluster may cost.
#include <algorithm>

#include "base/error.h"
#include "compiler/fuser.h"
#include "compiler/op_cost.h"
#include "plan/library.h"

namespace tn {

Folding folding_of(const GraphOp& op) {
  Folding f;
  op.op->reduce_axes(op.attr_data(), f.axes, f.keepdims);
  return f;
}

const Shape& domain_of(const Graph& graph, const GraphOp& end) {
  bool folds = end.op->family == Family::reduction;
  return graph.types[static_cast<size_t>(folds ? graph.in(end)[0] : end.out)]->shape;
}

bool has_loop_form(const Graph& graph, const GraphOp& op, const Target& target) {
  if (op.op == &scalar_leaf) return false;
  if (op.op->is_elementwise()) {
    bool complex = std::ranges::any_of(graph.in(op), [&](Val v) {
      return is_complex(graph.types[static_cast<size_t>(v)]->dtype);
    });
    return complex ? op.op->rules->complex != nullptr : op.op->rules->scalar != nullptr;
  }
  return op.op->family == Family::reduction && !library_kernel(*op.op, graph.in_types(op), target);
}

int pointwise_nest_cost(const Graph& graph, const GraphOp& op) {
  if (!op.op->rules->lower || op.outs != 1) return -1;
  std::vector<TypeRef> in = graph.in_types(op);
  loop::Lowering probe("probe", in, graph.out_types(op));
  op.op->rules->lower(op.attr_data(), probe);
  const loop::Kernel& k = probe.b.kernel();
  const Shape& shape = probe.out[0]->shape;
  if (static_cast<int>(k.axes.size()) != shape.rank()) return -1;
  Coords at;
  for (int i = 0; i < shape.rank(); ++i) {
    const loop::KernelAxis& axis = k.axes[static_cast<size_t>(i)];
    if (axis.kind != loop::AxisKind::par || !identical(axis.extent, shape[i])) return -1;
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

constexpr int kMostPlaces = 32;  // where one kernel computes an op: they double per level

}  // namespace

Fuser::Fuser(const Graph& graph, const CompileOptions& options, std::span<const Binding> sizes,
             Decisions* decisions, const std::vector<bool>& late)
    : graph_(graph),
      sizes_(sizes),
      target_(options.target),
      costs_(costs_of(options.target)),
      decisions_(decisions),
      late_(late),
      uses_(graph.types.size()),
      readers_(graph.types.size()),
      returned_(graph.types.size()),
      next_(graph.ops.size()),
      may_fuse_(!std::ranges::count(options.off, "fuse")),
      may_fold_(may_fuse_ && !std::ranges::count(options.off, "row-kernels")),
      may_finish_(may_fuse_ && !std::ranges::count(options.off, "epilogue")),
      may_nest_(!options.checks_indices) {
  if (options.effort == Effort::e0) {
    out_.immediate = true;
    may_fold_ = may_finish_ = false;
    decisions_ = nullptr;
  } else {
    out_.polys.emplace();
  }
  out_.producer.assign(graph.types.size(), -1);
  for (size_t i = 0; i < graph.ops.size(); ++i)
    for (int k = 0; k < graph.ops[i].outs; ++k)
      out_.producer[index(graph.ops[i].out + k)] = static_cast<int>(i);
  for (Val v : graph.outputs) returned_[index(v)] = true;
  if (!out_.immediate) cones_ = find_cones(graph, out_.producer, sizes);
  roles_.reserve(graph.ops.size()), libraries_.reserve(graph.ops.size());
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    roles_.push_back(find_role(i));
    libraries_.push_back((i ? libraries_.back() : 0) + (roles_[i] == Role::alone));
  }
}

Fusion Fuser::run() {
  for (int i = static_cast<int>(graph_.ops.size()) - 1; i >= 0; --i) place(i);
  merge_siblings();
  order();
  for (Cluster& c : out_.clusters) {
    std::ranges::sort(c.members);
    auto repeated = std::ranges::unique(c.members);
    c.members.erase(repeated.begin(), repeated.end());
    if (c.hero >= 0) c.sums = find_sums(c);
    if (out_.immediate) find_reads(c);
  }
  return std::move(out_);
}

Fuser::Role Fuser::find_role(size_t i) {
  const GraphOp& op = graph_.ops[i];
  if (op.op == &scalar_leaf) return Role::number;
  if (op.op->view) return Role::view;
  for (Val v : graph_.in(op))
    if (is_empty(v)) return Role::alone;
  if (is_empty(op.out)) return Role::alone;
  if (has_loop_form(graph_, op, target_)) return op.op->is_elementwise() ? Role::point : Role::fold;
  if (out_.immediate) return Role::alone;
  const LibraryKernel* kernel = library_kernel(*op.op, graph_.in_types(op), target_);
  bool may_nest = !kernel || (may_nest_ && !kernel->beats_loops);
  int cost = may_nest ? pointwise_nest_cost(graph_, op) : -1;
  if (cost < 0) return Role::alone;
  cones_[i].cost = cost;
  return Role::nest;
}

void Fuser::place(int i) {
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

void Fuser::decide(bool made, const GraphOp& op, std::string what, std::string reason) {
  if (decisions_) decisions_->push_back({"fuse", made, std::move(what), std::move(reason), op.loc});
}

void Fuser::place_view(int i) {
  const GraphOp& op = op_at(i);
  Val from = graph_.in(op)[0];
  bool stored = false;
  if (out_.immediate) {
    for (const Use& use : uses_[index(op.out)]) add_reader(from, node(use.cluster));
  } else {
    stored = may_fuse_ && is_wanted_in_rows(op.out) && !keeps_order(op.out);
    if (stored) store_view(i);
    see_through(i);
  }
  if (stored) return;
  for (int reader : readers_[index(op.out)]) add_reader(from, reader);
  if (returned_[index(op.out)]) returned_[index(from)] = true;
}

void Fuser::see_through(int i) {
  const GraphOp& op = op_at(i);
  Val from = graph_.in(op)[0];
  if (is_empty(op.out) || is_empty(from)) return;
  View view = op.op->view(op.attr_data(), *type(from));
  for (const Use& use : uses_[index(op.out)])
    add_use(from, use.cluster, through_view(polys(), view, type(from)->shape, use.at));
}

bool Fuser::is_wanted_in_rows(Val v) const {
  if (is_empty(v)) return false;
  auto walks_rows = [&](int node) {
    if (node >= static_cast<int>(graph_.ops.size())) return false;
    const GraphOp& reader = op_at(node);
    return !tiled_form(*reader.op, graph_.in_types(reader), target_);
  };
  return returned_[index(v)] || std::ranges::any_of(readers_[index(v)], walks_rows);
}

bool Fuser::keeps_order(Val v) const {
  for (int i = out_.producer[index(v)]; i >= 0 && role_of(i) == Role::view;) {
    const GraphOp& op = op_at(i);
    Val from = graph_.in(op)[0];
    if (op.op->view(op.attr_data(), *type(from)).kind != View::Kind::reshape) return false;
    i = out_.producer[index(from)];
  }
  return true;
}

void Fuser::store_view(int i) {
  Val v = op_at(i).out;
  int c = new_cluster(elements(v));
  Coords at = points_in(v, c);
  cluster(c).stores[v] = at;
  cluster(c).members.push_back(i);
  connect(node(c), readers_[index(v)]);
  add_use(v, c, at);
}

void Fuser::add_use(Val v, int c, Coords at) {
  std::vector<Use>& uses = uses_[index(v)];
  auto same = [&](const Use& u) { return u.cluster == c && u.at == at; };
  if (std::ranges::none_of(uses, same)) uses.push_back({c, std::move(at)});
}

void Fuser::add_reader(Val v, int reader) {
  if (!std::ranges::count(readers_[index(v)], reader)) readers_[index(v)].push_back(reader);
}

void Fuser::find_users(Val v, std::vector<int>& found) const {
  found.clear();
  for (const Use& u : uses_[index(v)])
    if (!std::ranges::count(found, u.cluster)) found.push_back(u.cluster);
  std::ranges::reverse(found);
}

std::vector<int> Fuser::clusters_using(Val v) const {
  std::vector<int> found;
  find_users(v, found);
  return found;
}

const Coords* Fuser::only_use(Val v, int c) const {
  const Coords* found = nullptr;
  for (const Use& u : uses_[index(v)]) {
    if (u.cluster != c) continue;
    if (found) return nullptr;
    found = &u.at;
  }
  return found;
}

std::vector<int> Fuser::others(Val v, int c) const {
  std::vector<int> nodes = readers_[index(v)];
  for (int other : clusters_using(v))
    if (other != c) nodes.push_back(node(other));
  return nodes;
}

bool Fuser::is_after(const std::vector<int>& from, int to) const {
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

void Fuser::connect(int from, const std::vector<int>& to) {
  for (int n : to) next_[static_cast<size_t>(from)].push_back(n);
}

int Fuser::new_cluster(Dim points) {
  out_.clusters.push_back({.points = points});
  if (!out_.immediate) out_.clusters.back().whole = par_axis(out_.clusters.back());
  next_.emplace_back();
  return static_cast<int>(out_.clusters.size()) - 1;
}

Coords Fuser::points_in(Val v, int c) {
  if (out_.immediate) return {};
  return point(polys(), type(v)->shape, par_axis(cluster(c)));
}

Coords Fuser::operand_at(Val v, const GraphOp& op, const Coords& at) {
  if (out_.immediate) return {};
  return broadcast_point(polys(), type(v)->shape, at, type(op.out)->shape);
}

void Fuser::place_point(int i) {
  Val v = op_at(i).out;
  std::vector<int>& users = users_;
  find_users(v, users);
  bool outside = is_outside(v);
  if (users.empty() && !outside) return;
  if (!outside && users.size() == 1 && holds_operands(i, users[0])) users.clear();
  if (may_fuse_ && !outside && !users.empty() && can_inline(i, users)) {
    for (int c : users) join(i, c);
    return;
  }
  for (int c : users) {
    if (!may_fuse_) break;
    if (may_fold_ && !cluster(c).folds) seek_rows(i, c);
    if (!can_store(i, c) || would_delay(v, c)) continue;
    store(v, c, *only_use(v, c));
    return join(i, c);
  }
  if (decisions_ && !clusters_using(v).empty()) report_why_written(i);
  int c = new_cluster(elements(v));
  Coords at = points_in(v, c);
  add_use(v, c, at);
  store(v, c, at);
  join(i, c);
}

void Fuser::report_why_written(int i) {
  const GraphOp& op = op_at(i);
  std::vector<int> users = clusters_using(op.out);
  auto is_full = [&](int c) { return cluster(c).members.size() >= kMaxMembers; };
  auto is_late = [&](int c) { return can_store(i, c) && would_delay(op.out, c); };
  std::string reason = "it would be computed several times for an element";
  if (!may_fuse_)
    reason = "fusion is switched off";
  else if (std::ranges::any_of(users, is_full))
    reason = format("the kernel has {} ops", kMaxMembers);
  else if (std::ranges::any_of(users, is_late))
    reason = "others that need it in memory would wait for a reduction";
  else if (is_outside(op.out))
    reason = "others need it in memory too, earlier or in another order";
  else if (users.size() == 1 && holds_operands(i, users[0]))
    reason = "its operands would wait for it in memory";
  else if (users.size() > 1)
    reason = format("writing it costs less than computing it for {} readers", users.size());
  decide(false, op, format("{} into its readers", op.op->name), std::move(reason));
}

void Fuser::store(Val v, int c, const Coords& at) {
  cluster(c).stores[v] = at;
  connect(node(c), others(v, c));
}

bool Fuser::holds_operands(int i, int c) const {
  const GraphOp& op = op_at(i);
  int later = out_.clusters[static_cast<size_t>(c)].members.front();
  if (libraries_[static_cast<size_t>(later)] == libraries_[static_cast<size_t>(i)]) return false;
  Val first = kNoVal;
  for (Val v : graph_.in(op)) {
    int made_by = out_.producer[index(v)];
    bool large = made_by >= 0 && role_of(made_by) != Role::number &&
                 identical(type(v)->shape, type(op.out)->shape);
    if (!large) continue;
    if (first != kNoVal && first != v) return true;
    first = v;
  }
  return false;
}

bool Fuser::can_inline(int i, const std::vector<int>& users) {
  if (out_.immediate) return can_inline_now(i, users);
  const Cone& cone = cones_[static_cast<size_t>(i)];
  if (users.size() > 1) {
    bool cheap =
        role_of(i) == Role::point && cone.leaves.size() <= 1 && cone.cost <= costs_.repeat_cost;
    if (!cheap || (cone.cost >= kMathCost && is_small_for(op_at(i).out, users))) return false;
  }
  return std::ranges::all_of(users, [&](int c) { return fits(i, c); });
}

bool Fuser::is_small_for(Val v, const std::vector<int>& users) {
  return std::ranges::all_of(users, [&](int c) {
    return likely(elements(v)) * 8 <= likely(cluster(c).points * cluster(c).folded);
  });
}

bool Fuser::fits(int i, int c) {
  if (cluster(c).members.size() >= kMaxMembers) return false;
  const GraphOp& op = op_at(i);
  int64_t evaluations = 0;
  int places = 0;
  PolyId red = red_axis(cluster(c));
  std::optional<AtomId> folded = polys().as_atom(red);
  for (const Use& u : uses_[index(op.out)]) {
    if (u.cluster != c) continue;
    if (++places > kMostPlaces) return false;
    bool full = !cluster(c).folds;
    for (PolyId p : u.at) full |= folded && polys().contains(p, *folded);
    evaluations += likely(cluster(c).points) * (full ? likely(cluster(c).folded) : 1);
  }
  int64_t repeated = evaluations - likely(elements(op.out));
  if (repeated <= costs_.few_evaluations) return true;
  return cones_[static_cast<size_t>(i)].cost <
         (role_of(i) == Role::nest ? costs_.nest_cost : kMathCost);
}

bool Fuser::can_store(int i, int c) {
  if (out_.immediate) return can_store_now(i, c);
  Val v = op_at(i).out;
  const Coords* at = only_use(v, c);
  if (!at || cluster(c).members.size() >= kMaxMembers) return false;
  PolyId place = place_of(v, *at);
  bool full =
      place == cluster(c).whole && identical(elements(v), cluster(c).points * cluster(c).folded);
  bool row = place == par_axis(cluster(c)) && identical(elements(v), cluster(c).points);
  return (full || row) && !is_after(others(v, c), node(c));
}

bool Fuser::would_delay(Val v, int c) {
  return cluster(c).folds && next_[static_cast<size_t>(node(c))].empty() &&
         !readers_[index(v)].empty() && likely(elements(v)) <= costs_.waiting_elements;
}

void Fuser::join(int i, int c) {
  const GraphOp& op = op_at(i);
  cluster(c).members.push_back(i);
  if (role_of(i) == Role::nest) {
    for (Val v : graph_.in(op)) add_reader(v, node(c));
    return;
  }
  for (const Use& u : uses_[index(op.out)]) {
    if (u.cluster != c) continue;
    for (Val v : graph_.in(op)) add_use(v, c, operand_at(v, op, u.at));
  }
}

void Fuser::place_alone(int i) {
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

int Fuser::finisher(const GraphOp& op) {
  if (!may_finish_ || op.outs != 1 || !tiled_form(*op.op, graph_.in_types(op), target_)) return -1;
  auto empty = [&](Val v) { return is_empty(v); };
  if (is_empty(op.out) || std::ranges::any_of(graph_.in(op), empty)) return -1;
  for (int c : clusters_using(op.out)) {
    const Coords* at = only_use(op.out, c);
    if (!at || cluster(c).folds || cluster(c).hero >= 0) continue;
    if (place_of(op.out, *at) != par_axis(cluster(c)) ||
        !identical(elements(op.out), cluster(c).points))
      continue;
    if (is_after(others(op.out, c), node(c))) continue;
    decide(true, op, format("{} with the {} ops after it", op.op->name, cluster(c).members.size()),
           "they work on its blocks while these are in the cache");
    return c;
  }
  if (!clusters_using(op.out).empty())
    decide(false, op, format("{} with the ops after it", op.op->name),
           "they fold its result, or do not go through it point by point");
  return -1;
}

Val Fuser::find_sums(const Cluster& c) const {
  Val own = op_at(c.hero).out;
  DType dtype = type(own)->dtype;
  for (const auto& [v, at] : c.stores)
    if (v == own) return own;  // it is wanted itself
  for (const auto& [v, at] : c.stores)
    if (type(v)->dtype == dtype && identical(elements(v), c.points)) return v;
  return kNoVal;
}

Fusion fuse(const Graph& graph, const CompileOptions& options, std::span<const Binding> sizes,
            Decisions* decisions, const std::vector<bool>& late) {
  return Fuser(graph, options, sizes, decisions, late).run();
}

}  // namespace tn
