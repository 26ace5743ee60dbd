#pragma once
// The leaves of backward() for the library's own callers.
#include "tenon/backward.h"

namespace tn {

/// Makes a parameter of a module a leaf without keeping ops for it. Does nothing if gradients are
/// disabled, or if the parameter depends on a leaf that requires gradients.
void watch(Tensor& parameter);

/// `value`, which has no other references, as a leaf with this gradient, or without one.
Tensor as_variable(const Tensor& value, Tensor gradient, bool kept = true);

}  // namespace tn
