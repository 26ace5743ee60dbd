#pragma once
// Products along an axis that derivatives need, without a division.
#include "tenon/tensor.h"

namespace tn::ops {

/// At each element the product of all others along `axis`.
Tensor products_of_others(const Tensor& x, int axis);

}  // namespace tn::ops
