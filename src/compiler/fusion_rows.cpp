// Reductions: clusters whose points are rows.
#include "base/error.h"
#include "compiler/fuser.h"

namespace tn {

void Fuser::place_fold(int i) {
  const GraphOp& op = op_at(i);
  Val v = op.out;
  merge_readers(i);
  std::vector<int> users = clusters_using(v);
  if (users.empty() && !is_outside(v)) return;
  for (int c : users) {
    if (!may_fold_ || !can_fold(i, c)) continue;
    if (is_outside(v) || users.size() > 1) store(v, c, *only_use(v, c));
    return join_fold(i, c);
  }
  int c = new_cluster(elements(v));
  Coords at = points_in(v, c);
  start_folding(i, c);
  add_use(v, c, at);
  store(v, c, at);
  join_fold(i, c);
}

void Fuser::merge_readers(int i) {
  const GraphOp& op = op_at(i);
  if (!may_fold_) return;
  std::vector<int> rows = clusters_using(graph_.in(op)[0]);
  std::erase_if(rows, [&](int c) { return !cluster(c).folds || !only_use(op.out, c); });
  merge_siblings(graph_.in(op)[0], std::move(rows));
}

Dim Fuser::folded_elements(const GraphOp& op) const {
  Dim folded = 1;
  for (Axis a : folding_of(op).axes) folded *= type(graph_.in(op)[0])->shape[a.i];
  return folded;
}

void Fuser::start_folding(int i, int c) {
  const GraphOp& op = op_at(i);
  cluster(c).folds = true;
  cluster(c).folded = folded_elements(op);
  if (!out_.immediate) cluster(c).whole = operand_place(op, c);
}

PolyId Fuser::operand_place(const GraphOp& op, int c) {
  Coords row = point(polys(), type(op.out)->shape, par_axis(cluster(c)));
  return place_of(graph_.in(op)[0], operand_point(op, c, row));
}

Coords Fuser::operand_point(const GraphOp& op, int c, const Coords& row) {
  Folding f = folding_of(op);
  return reduced_point(polys(), type(graph_.in(op)[0])->shape, f.axes, f.keepdims, row,
                       red_axis(cluster(c)));
}

void Fuser::join_fold(int i, int c) {
  const GraphOp& op = op_at(i);
  cluster(c).members.push_back(i);
  const Coords row = *only_use(op.out, c);
  add_use(graph_.in(op)[0], c, out_.immediate ? Coords() : operand_point(op, c, row));
}

bool Fuser::folds_last_axis(const GraphOp& op) const {
  return folding_of(op).axes.has(type(graph_.in(op)[0])->rank() - 1);
}

bool Fuser::can_fold(int i, int c) {
  const GraphOp& op = op_at(i);
  const Coords* at = only_use(op.out, c);
  if (!at || cluster(c).hero >= 0 || cluster(c).members.size() >= kMaxMembers) return false;
  if (is_after(others(op.out, c), node(c))) return false;
  Dim rows = elements(op.out), folded = folded_elements(op);
  bool at_rows = place_of(op.out, *at) == par_axis(cluster(c));
  if (cluster(c).folds) {
    if (!at_rows || !identical(rows, cluster(c).points) || !identical(folded, cluster(c).folded))
      return false;
    if (folds_last_axis(op)) return true;
    decide(false, op, format("{} into its reader", op.op->name),
           "columns do not stay in the cache: their operands would be recomputed");
    return false;
  }
  if (at_rows && identical(rows, cluster(c).points)) {  // only rows are wanted
    start_folding(i, c);
    return true;
  }
  return split_into_rows(i, op.out, c);
}

void Fuser::seek_rows(int i, int c) {
  Val v = op_at(i).out;
  if (!only_use(v, c) || cluster(c).hero >= 0) return;
  if (likely(elements(v)) >= likely(cluster(c).points)) return;
  int fold = fold_behind(i, elements(v), cluster(c).points);
  if (fold >= 0) split_into_rows(fold, v, c);
}

int Fuser::fold_behind(int i, Dim rows, Dim whole) const {
  constexpr int kMostOps = 16;
  std::vector<int> pending{i};
  for (int seen = 0; !pending.empty() && seen < kMostOps; ++seen) {
    int at = pending.back();
    const GraphOp& op = op_at(at);
    pending.pop_back();
    if (role_of(at) == Role::fold) {
      if (identical(elements(op.out), rows) && identical(elements(graph_.in(op)[0]), whole))
        return at;
      continue;
    }
    if (role_of(at) != Role::point && role_of(at) != Role::view) continue;
    for (Val v : graph_.in(op))
      if (int made_by = out_.producer[index(v)]; made_by >= 0) pending.push_back(made_by);
  }
  return -1;
}

bool Fuser::split_into_rows(int i, Val by_row, int c) {
  const GraphOp& op = op_at(i);
  Dim rows = elements(op.out), folded = folded_elements(op), whole = cluster(c).points;
  if (!identical(whole, rows * folded) || folded.is(1)) return false;
  std::string what = format("{} into its reader", op.op->name);
  if (!folds_last_axis(op)) {
    decide(false, op, what, "the last axis is not reduced: rows would not be contiguous");
    return false;
  }
  if (likely(folded) > costs_.longest_row ||
      (likely(rows) < costs_.fewest_rows && likely(whole) > costs_.small_domain)) {
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

}  // namespace tn
