#pragma once
// One element in memory as a number.
#include "tenon/shape.h"

namespace tn {

Scalar element_at(DType dtype, const void* at);

}  // namespace tn
