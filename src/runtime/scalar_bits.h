#pragma once
// Numbers as elements.
#include <array>
#include <cstddef>

#include "tenon/shape.h"

namespace tn {

/// `value` as an element of the real type `type`, in the low bytes.
std::array<std::byte, 8> element_bits(const Scalar& value, DType type);

}  // namespace tn
