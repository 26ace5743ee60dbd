#pragma once
// Calling one op from the body of another by its definition: conversions and broadcasting included.
#include "ir/emit.h"

namespace tn::ops {

template <class A = NoAttrs>
Tensor apply(const OpDef& op, Tensors in, A attrs = {}) {
  return std::move(call_with(op, std::move(in), &attrs)[0]);
}

}  // namespace tn::ops
