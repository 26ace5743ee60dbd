#pragma once
// The order in which an op's operands and fields are given.
#include "ir/attrs.h"

namespace tn {

/// How many of an op's `operands` come before a field in calls: none before a text that names
/// something (an einsum pattern), one before an axis that must be given (`index_select(x, axis,
/// indices)`, as in PyTorch), all before the others.
constexpr int operands_before(FieldKind kind, bool required, int operands) {
  if (required && kind == FieldKind::text) return 0;
  bool second = required && kind == FieldKind::axis && operands > 0;
  return second ? 1 : operands;
}

}  // namespace tn
