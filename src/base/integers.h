#pragma once
// Arithmetic of whole numbers.
#include <cstdint>

namespace tn {

/// The least multiple of `unit` that is not below `value`.
constexpr int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace tn
