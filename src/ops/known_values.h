#pragma once
// Values that an op needs while it is being called, because its result's shape depends on them.
#include <string_view>

#include "base/error.h"
#include "tenon/tensor.h"

namespace tn::ops {

/// The elements of `x`, computed now. While tracing there are none: the failure names `op`, and
/// `hint` says what to do.
const void* values_now(std::string_view op, const Tensor& x, const Hint& hint = {});

}  // namespace tn::ops
