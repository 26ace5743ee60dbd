// Contractions. A permute or reshape of an operand is another choice of axes; what cannot be chosen
// away moves behind the `dot`:
//
//     dot(permute(x), y) = dot(x, y) over the axes before, where pairs keep their order, which is
//                          that of the sum, and so do free axes
//     dot(reshape(x), y) = reshape(dot(x, y)), where only free axes are split or merged
//     dot(x, y) = reshape(dot(x', y')), without the unit axes that a reshape put in
//     permute(dot(x, y)) = permute(dot(y, x)), where that keeps the last axis last; not of complex
//                          numbers, whose imaginary parts are chains that know left from right
//
// The bits of a dot depend on the extent of the sum, so all of these are exact.
#include "ops/contract.h"
#include "ops/op_attrs.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "passes/canon.h"

namespace tn {

namespace {

/// One operand of a dot: its value and which of its axes are summed, batched, or neither.
struct Side {
  Val x;
  Axes contract, batch;

  bool is_free(int k) const { return !contract.has(k) && !batch.has(k); }
  Axes free(int rank) const {
    Axes axes;
    for (int k = 0; k < rank; ++k)
      if (is_free(k)) axes.push_back(k);
    return axes;
  }
};

struct Dot {
  Side side[2];
  explicit Dot(const Candidate& op) {
    const auto& a = op.as<ops::DotAttrs>();
    side[0] = {op.in[0], a.lhs_contract, a.lhs_batch};
    side[1] = {op.in[1], a.rhs_contract, a.rhs_batch};
  }
  /// Recorded dots have their pairs in the order of the left axes.
  bool is_ordered() const { return is_ascending(side[0].contract) && is_ascending(side[0].batch); }
  Val add(Canon& canon) const {
    ops::DotAttrs attrs{side[0].contract, side[1].contract, side[0].batch, side[1].batch};
    return canon.add(ops::dot, attrs, {side[0].x, side[1].x});
  }
};

/// Whether the axes follow each other, so that they are walked as one.
bool is_run(const Axes& axes) {
  for (int i = 1; i < axes.size(); ++i)
    if (axes[i].i != axes[i - 1].i + 1) return false;
  return true;
}

/// Replaces a permuted operand by the one before, if that is as good: otherwise its elements would
/// be brought in order by every dot, and not once by the permute.
bool take_permute(Canon& canon, Dot& dot, int i) {
  Side& side = dot.side[i];
  Val x = canon.operand_of(side.x, ops::permute_dims);
  if (x == kNoVal) return false;
  const void* attrs = canon.maker(side.x).attr_data();
  const Perm& perm = *static_cast<const ops::PermAttrs*>(attrs)->axes;
  auto before = [&](Axes axes) {
    for (Axis& a : axes) a = perm[a.i];
    return axes;
  };
  Axes free = before(side.free(perm.size()));
  side = {x, before(side.contract), before(side.batch)};
  return is_run(free) && is_run(side.contract) && dot.is_ordered();
}

Val take_permutes(Canon& canon, const Candidate& op) {
  for (int i : {0, 1})
    if (Dot dot(op); take_permute(canon, dot, i)) return dot.add(canon);
  return kNoVal;
}

/// Unit axes that a reshape put in, the last ones of each run. Those that a tensor has anyway stay,
/// as they do in what else reads it.
Axes new_units(Canon& canon, Val v) {
  Val x = canon.operand_of(v, ops::reshape);
  if (x == kNoVal || !same_but_units(canon.shape(x), canon.shape(v))) return {};
  const Shape &from = canon.shape(x), &to = canon.shape(v);
  Axes added;
  for (int i = from.rank() - 1, k = to.rank() - 1; k >= 0; --i, --k) {
    int old = 0, all = 0;  // units in front of the axes behind
    while (i - old >= 0 && from[i - old].is(1)) ++old;
    while (k - all >= 0 && to[k - all].is(1)) ++all;
    for (int n = 0; n < all - old; ++n) added.insert(0, k - n);
    i -= old, k -= all;
  }
  return added;
}

Val drop_new_units(Canon& canon, const Candidate& op) {
  Dot dot(op);
  Axes dropped[] = {new_units(canon, op.in[0]), new_units(canon, op.in[1])};
  if (dropped[0].empty() && dropped[1].empty()) return kNoVal;
  auto drop_pairs = [&](const Axes& left, const Axes& right) {
    for (int i = 0; i < left.size(); ++i) {
      bool one = dropped[0].has(left[i].i), other = dropped[1].has(right[i].i);
      if (one && !other) dropped[1].push_back(right[i]);
      if (other && !one) dropped[0].push_back(left[i]);
    }
  };
  drop_pairs(dot.side[0].contract, dot.side[1].contract);
  drop_pairs(dot.side[0].batch, dot.side[1].batch);
  for (int i : {0, 1}) {
    Side& side = dot.side[i];
    auto kept = [&](const Axes& axes) {
      Axes list;
      for (Axis a : axes)
        if (!dropped[i].has(a.i))
          list.push_back(a.i - static_cast<int>(std::ranges::count_if(
                                   dropped[i], [&](Axis d) { return d.i < a.i; })));
      return list;
    };
    Val x = canon.reshape(side.x, ops::without_axes(canon.shape(side.x), dropped[i]));
    side = {x, kept(side.contract), kept(side.batch)};
  }
  return canon.reshape(dot.add(canon), op.type->shape);
}

/// The axes of `from` that make up each axis of `to`, where one of `to` is one of `from`; -1 where
/// several are split or merged.
std::optional<Axes> matching_axes(const Shape& from, const Shape& to) {
  Axes match;
  int i = 0, k = 0;
  while (k < to.rank()) {
    if (i == from.rank()) return {};
    int first = k;
    Dim left = from[i++], right = to[k++];
    bool alone = identical(left, right);
    while (!identical(left, right)) {
      bool constant = left.is_const() && right.is_const();
      bool less = constant ? left.value() < right.value() : exact_div(right, left).has_value();
      if (!constant && !less && !exact_div(left, right)) return {};
      if (less ? i == from.rank() : k == to.rank()) return {};
      less ? left *= from[i++] : right *= to[k++];
    }
    for (int n = first; n < k; ++n) match.push_back(alone ? i - 1 : -1);
  }
  return i == from.rank() ? std::optional(match) : std::nullopt;
}

Val move_reshapes(Canon& canon, const Candidate& op) {
  for (int i : {0, 1}) {
    Dot dot(op);
    Side& side = dot.side[i];
    Val x = canon.operand_of(side.x, ops::reshape);
    if (x == kNoVal || same_but_units(canon.shape(x), canon.shape(side.x))) continue;
    std::optional<Axes> match = matching_axes(canon.shape(x), canon.shape(side.x));
    if (!match) continue;
    bool whole = true;  // pairs are of single axes
    auto before = [&](Axes axes) {
      for (Axis& a : axes) a = (*match)[a.i], whole &= a.i >= 0;
      return axes;
    };
    side = {x, before(side.contract), before(side.batch)};
    if (!whole) continue;
    bool is_permuted = canon.operand_of(x, ops::permute_dims) != kNoVal;
    if (is_permuted && !take_permute(canon, dot, i)) continue;
    return canon.reshape(dot.add(canon), op.type->shape);
  }
  return kNoVal;
}

}  // namespace

Val swap_dot(Canon& canon, const Candidate& op) {
  GraphOp made = canon.maker(op.in[0]);
  if (op.op != &ops::permute_dims || made.op != &ops::dot || canon.is_shared(op.in[0]) ||
      is_complex(op.type->dtype))
    return kNoVal;
  Dot dot({made.op, made.attrs, {canon.in(made)[0], canon.in(made)[1]}, nullptr, {}});
  std::swap(dot.side[0], dot.side[1]);
  int batch = dot.side[0].batch.size(), rank = op.type->rank();
  int rows = dot.side[1].free(canon.shape(dot.side[1].x).rank()).size();  // of the left, before
  const Perm& perm = *op.as<ops::PermAttrs>().axes;
  int last = perm.back().i;
  if (rows == 0 || last != batch + rows - 1 || last == rank - 1 || !dot.is_ordered()) return kNoVal;
  Perm rest;  // axis a of the dot is behind the columns now, or in front of the rows
  for (Axis a : perm)
    rest.push_back(a.i < batch ? a.i : a.i < batch + rows ? a.i + rank - batch - rows : a.i - rows);
  return canon.permute(dot.add(canon), rest);
}

std::span<const CanonRule> dot_rules() {
  static constexpr CanonRule kRules[] = {drop_new_units, take_permutes, move_reshapes};
  return kRules;
}

}  // namespace tn
