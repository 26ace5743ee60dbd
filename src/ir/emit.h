#pragma once
// Calling ops: from users (`call`: attributes as given, operands of any kind) and from rules
// (`emit`: canonical).
#include "ir/node.h"

namespace tn {

/// Calls `op` as a user does: packs `fields` (pointers to the attribute values in order; null: all
/// defaults), converts operands, then records the op or expands it. An absent optional operand is a
/// null tensor.
Tensors call(const OpDef& op, std::span<const Operand* const> in, const void* const* fields);
/// The same for ops with one result.
Tensor call_one(const OpDef& op, std::span<const Operand* const> in, const void* const* fields);
/// With operands as tensors (null: absent) and attributes as a struct that `op` may change.
Tensors call_with(const OpDef& op, Tensors in, void* attrs);

/// `x` with axes of 1 where it is to be repeated up to `to`. It broadcasts to `to` at the hinted
/// sizes.
Tensor with_unit_axes(const Tensor& x, const Shape& to);

/// Records `op` with canonical operands and attributes.
Tensors emit_all(const OpDef& op, std::span<const Tensor> in, const void* attrs);
/// Where an op on these computes: where they are, or, for nothing but numbers, on this thread's
/// device.
Device device_of(std::span<const Tensor> in);
template <class A>
Tensor emit(const OpDef& op, std::initializer_list<Tensor> in, const A& attrs) {
  return emit_all(op, {in.begin(), in.size()}, &attrs)[0];
}
Tensor emit(const OpDef& op, std::initializer_list<Tensor> in);

/// `x` converted to `type`; itself when it has it.
Tensor cast_to(const Tensor& x, DType type);
/// Converts every operand to the promoted type of all (weak scalars do not widen) and returns that
/// type.
DType promote_all(Tensors& in, std::string_view op, KindSet accepted, bool to_inexact_type = false);
/// Fails by name when `type` is not in `accepted`.
void check_kind(std::string_view op, KindSet accepted, DType type);

}  // namespace tn
