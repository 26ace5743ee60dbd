#pragma once
// Calls of elementwise ops that are known to need no conversion, by the types of their operands:
// the most frequent calls of all.
#include "ir/opdef.h"

namespace tn {

/// Records `op` on one operand (then `b` is null) or two. A null tensor: nothing is known of such
/// a call, which call_one serves and remembers.
Tensor call_known(const OpDef& op, const Tensor& a, const Tensor* b);

}  // namespace tn
