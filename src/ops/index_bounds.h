#pragma once
// Indices out of bounds: errors in eager evaluation. Compiled code clamps or drops them, unless
// checks are enabled.
#include "ir/node.h"
#include "tenon/error.h"

namespace tn::ops {

/// Whether gathers and scatters that run on this thread check their indices.
inline thread_local bool indices_are_checked = false;

/// An index that a running op found out of bounds. The launcher adds the op and the user's line.
class OutOfBounds : public UserError {
 public:
  OutOfBounds(int64_t index, int axis, const Type& x, size_t from_last);
  const int64_t index, extent;
  const size_t from_last;  // which of the operands it is in, 1 for the last
  const std::string fact;  // "is out of bounds for axis 0 of extent 5 (f32[5])"
};

/// Fails where one of `indices`, if they are computed already, is not in [0, extent) of `axis`, or
/// in [-extent, extent) where negative ones count from the end. The others are checked when the op
/// runs.
enum class Negative : uint8_t { wraps, is_outside };
void check_bounds(std::string_view op, const Tensor& indices, const Type& x, int axis,
                  Negative negative);

}  // namespace tn::ops
