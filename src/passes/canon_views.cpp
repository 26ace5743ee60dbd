// Views of views:
//
//     reshape(reshape(x)) = reshape(x)            permute(permute(x)) = permute(x)
//     slice(slice(x)) = slice(x), of cut axes     flip(flip(x)) = flip(x)
//     broadcast(broadcast(x)) = broadcast(x)      permute(broadcast(x)) = broadcast(permute(x))
//     view(x) = x where it moves nothing; a permute that moves unit axes only is a reshape; and
//     every view of a number is the number, repeated
#include "ops/op_attrs.h"
#include "ops/op_decls.h"
#include "ops/slice_attrs.h"
#include "passes/canon.h"

namespace tn {

namespace {

using Kind = View::Kind;

View view_of(Canon& canon, const Candidate& op) {
  return op.op->view(op.attrs ? op.attrs->data : nullptr, *canon.type(op.in[0]));
}

bool moves_nothing(const View& view) {
  switch (view.kind) {
    case Kind::reshape:
    case Kind::broadcast:
      return true;  // of equal shapes
    case Kind::permute:
      for (int k = 0; k < view.perm.size(); ++k)
        if (view.perm[k].i != k) return false;
      return true;
    case Kind::slice:
      return std::ranges::all_of(view.start, [](Offset s) { return s == Offset(0); }) &&
             std::ranges::all_of(view.step, [](int64_t s) { return s == 1; });
    case Kind::reverse:
      return std::ranges::all_of(view.axes, [&](Axis a) { return view.shape[a.i].is(1); });
    case Kind::window:
      return false;
  }
  return false;
}

Val drop_identity(Canon& canon, const Candidate& op) {
  if (op.type != canon.type(op.in[0])) return kNoVal;
  return moves_nothing(view_of(canon, op)) ? op.in[0] : kNoVal;
}

Val repeat_number(Canon& canon, const Candidate& op) {
  Val x = canon.repeated_scalar(op.in[0]);
  if (x == kNoVal || op.type->elements == 0) return kNoVal;
  bool is_unit = op.op == &ops::reshape && op.in[0] == x;
  bool is_repeated = op.op == &ops::broadcast_to && canon.operand_of(op.in[0], ops::reshape) == x;
  return is_unit || is_repeated ? kNoVal : canon.repeat(x, op.type->shape);
}

Val merge_permutes(Canon& canon, const Candidate& op) {
  Val x = canon.operand_of(op.in[0], ops::permute_dims);
  if (op.op != &ops::permute_dims || x == kNoVal) return kNoVal;
  const void* inner = canon.maker(op.in[0]).attr_data();
  const Perm& first = *static_cast<const ops::PermAttrs*>(inner)->axes;
  Perm perm;
  for (Axis a : *op.as<ops::PermAttrs>().axes) perm.push_back(first[a.i]);
  return canon.permute(x, perm);
}

/// The bounds of a slice that takes `count` elements, as recorded slices have them.
ops::SliceBounds bounds_of(int64_t start, int64_t step, int64_t count) {
  if (count == 0) return {0, 0, 1};
  if (count == 1) return {start, start + 1, 1};
  return {start, start + (count - 1) * step + 1, step};
}

bool takes_whole(const View& slice, const Shape& from, int k) {
  return slice.start[k] == Offset(0) && slice.step[k] == 1 && identical(slice.shape[k], from[k]);
}

/// Whether all axes that are not taken whole have constant extents.
bool cuts_constants(const View& slice, const Shape& from) {
  for (int k = 0; k < from.rank(); ++k)
    if (!takes_whole(slice, from, k) &&
        !(from[k].is_const() && slice.shape[k].is_const() && slice.start[k].is_const()))
      return false;
  return true;
}

/// The slice that `view` is, of those axes only that it does not take whole.
ops::SliceAttrs attrs_of(const View& view, const Shape& from) {
  ops::SliceAttrs attrs;
  attrs.step = Ints(), attrs.axis = Axes();
  for (int k = 0; k < from.rank(); ++k) {
    if (takes_whole(view, from, k)) continue;
    ops::SliceBounds b = bounds_of(view.start[k].value(), view.step[k], view.shape[k].value());
    if (b.start == Offset(0) && b.step == 1 && b.stop == Offset(from[k])) continue;
    attrs.start.push_back(b.start), attrs.stop.push_back(b.stop);
    attrs.step.value.push_back(b.step), attrs.axis.value.push_back(k);
  }
  return attrs;
}

Val merge_slices(Canon& canon, const Candidate& op) {
  if (op.op != &ops::slice) return kNoVal;
  View view = view_of(canon, op);
  if (!cuts_constants(view, canon.shape(op.in[0]))) return kNoVal;
  Val x = canon.operand_of(op.in[0], ops::slice);
  if (x == kNoVal) {
    ops::SliceAttrs fewest = attrs_of(view, canon.shape(op.in[0]));
    bool is_fewest = fewest.axis->size() == op.as<ops::SliceAttrs>().axis->size();
    return is_fewest ? kNoVal : canon.add(ops::slice, fewest, {op.in[0]});
  }
  View inner = ops::slice.view(canon.maker(op.in[0]).attr_data(), *canon.type(x));
  if (!cuts_constants(inner, canon.shape(x))) return kNoVal;
  for (int k = 0; k < view.shape.rank(); ++k) {
    view.start[k] = inner.start[k].value() + inner.step[k] * view.start[k].value();
    view.step[k] *= inner.step[k];
  }
  return canon.add(ops::slice, attrs_of(view, canon.shape(x)), {x});
}

Val merge_flips(Canon& canon, const Candidate& op) {
  Val x = canon.operand_of(op.in[0], ops::flip);
  if (op.op != &ops::flip || x == kNoVal) return kNoVal;
  const void* inner = canon.maker(op.in[0]).attr_data();
  const Axes& first = *static_cast<const ops::FlipAttrs*>(inner)->axis;
  const Axes& second = *op.as<ops::FlipAttrs>().axis;
  Axes once;
  for (int k = 0; k < op.type->rank(); ++k)
    if (first.has(k) != second.has(k)) once.push_back(k);
  return canon.add(ops::flip, ops::FlipAttrs{once}, {x});
}

Val merge_same_kind(Canon& canon, const Candidate& op) {
  if (op.op != &ops::reshape && op.op != &ops::broadcast_to) return kNoVal;
  Val x = canon.operand_of(op.in[0], *op.op);
  return x == kNoVal ? kNoVal : canon.add(*op.op, op.attrs, {x});
}

Val permute_units(Canon& canon, const Candidate& op) {
  if (op.op != &ops::permute_dims) return kNoVal;
  const Shape& from = canon.shape(op.in[0]);
  Axes moved;
  for (Axis a : *op.as<ops::PermAttrs>().axes)
    if (!from[a.i].is(1)) moved.push_back(a);
  return is_ascending(moved) ? canon.reshape(op.in[0], op.type->shape) : kNoVal;
}

Val permute_before_broadcast(Canon& canon, const Candidate& op) {
  Val x = canon.operand_of(op.in[0], ops::broadcast_to);
  if (op.op != &ops::permute_dims || x == kNoVal) return kNoVal;
  return canon.repeat(canon.permute(x, *op.as<ops::PermAttrs>().axes), op.type->shape);
}

}  // namespace

std::span<const CanonRule> view_rules() {
  static constexpr CanonRule kRules[] = {
      drop_identity, repeat_number, merge_same_kind,          merge_permutes, merge_slices,
      merge_flips,   permute_units, permute_before_broadcast, swap_dot,
  };
  return kRules;
}

}  // namespace tn
