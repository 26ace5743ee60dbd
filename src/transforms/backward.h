#pragma once
// The leaves of backward() for the library's own callers.
#include "tenon/backward.h"

namespace tn {

/// Makes a parameter of a module a leaf for as long as nothing is computed: no ops are kept for it.
/// Does nothing where gradients are not wanted, or with what has a leaf behind it that keeps them.
void watch(Tensor& parameter);

/// `value`, which has no other references, as a leaf with this gradient, or without one.
Tensor as_variable(const Tensor& value, Tensor gradient, bool kept = true);

}  // namespace tn
