// Reductions, whose tree depends on the extents of the reduced axes alone, in their order:
//
//     reduce(x, axes) = reshape(reduce(x, axes, keepdims))      one form; what follows broadcasts
//     reduce(x, unit axes) = x
//     reduce(permute(x), axes) = permute(reduce(x, axes before)), where they keep their order
//     reduce(reshape(x), axes) = reshape(reduce(x, axes before)), where it moves unit axes only
#include <cstring>

#include "ops/op_attrs.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "passes/canon.h"

namespace tn {

namespace {

struct Reduced {
  Axes axes;
  bool keepdims = false;
  explicit Reduced(const Candidate& op) { op.op->reduce_axes(op.attrs->data, axes, keepdims); }
};

/// The same reduction over `axes` of `x`, which stay as units.
Val reduce(Canon& canon, const Candidate& op, Val x, const Axes& axes) {
  AttrBuffer copy(*op.op->attrs, op.attrs->data);
  for (const Field& f : list_fields(*op.op->attrs, copy.data).items) {
    if (f.kind == FieldKind::axes) *static_cast<Axes*>(f.at) = axes;
    if (std::string_view(f.name) == "keepdims") *static_cast<bool*>(f.at) = true;
  }
  return canon.add(*op.op, intern(*op.op->attrs, copy.data), {x});
}

Val drop_unit_axes(Canon& canon, const Candidate& op) {
  const Type& x = *canon.type(op.in[0]);
  if (x.dtype != op.type->dtype || is_complex(x.dtype)) return kNoVal;
  Axes kept;
  for (Axis a : Reduced(op).axes)
    if (!x.shape[a.i].is(1)) kept.push_back(a);
  if (kept.size() == Reduced(op).axes.size() && !kept.empty()) return kNoVal;
  if (kept.empty()) return canon.reshape(op.in[0], op.type->shape);
  return canon.reshape(reduce(canon, op, op.in[0], kept), op.type->shape);
}

Val keep_axes(Canon& canon, const Candidate& op) {
  Reduced r(op);
  if (r.keepdims) return kNoVal;
  return canon.reshape(reduce(canon, op, op.in[0], r.axes), op.type->shape);
}

Val reduce_before_permute(Canon& canon, const Candidate& op) {
  Val x = canon.operand_of(op.in[0], ops::permute_dims);
  if (x == kNoVal) return kNoVal;
  const void* attrs = canon.maker(op.in[0]).attr_data();
  const Perm& perm = *static_cast<const ops::PermAttrs*>(attrs)->axes;
  Axes before;
  for (Axis a : Reduced(op).axes) before.push_back(perm[a.i]);
  if (!is_ascending(before)) return kNoVal;
  return canon.permute(reduce(canon, op, x, before), perm);
}

Val reduce_before_reshape(Canon& canon, const Candidate& op) {
  Val x = canon.operand_of(op.in[0], ops::reshape);
  if (x == kNoVal || !same_but_units(canon.shape(x), canon.shape(op.in[0]))) return kNoVal;
  auto solid = [&](Val v) {
    Axes axes;
    for (int k = 0; k < canon.shape(v).rank(); ++k)
      if (!canon.shape(v)[k].is(1)) axes.push_back(k);
    return axes;
  };
  Axes from = solid(x), to = solid(op.in[0]), reduced = Reduced(op).axes, before;
  for (int i = 0; i < to.size(); ++i)
    if (reduced.has(to[i].i)) before.push_back(from[i]);
  if (before.empty()) return kNoVal;
  return canon.reshape(reduce(canon, op, x, before), op.type->shape);
}

}  // namespace

std::span<const CanonRule> reduction_rules() {
  static constexpr CanonRule kRules[] = {drop_unit_axes, keep_axes, reduce_before_permute,
                                         reduce_before_reshape};
  return kRules;
}

}  // namespace tn
