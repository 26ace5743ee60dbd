#pragma once
// Mixed precision: products in a narrow type; long sums, exponentials and quotients in float32.
#include <optional>

#include "tenon/dtype.h"

namespace tn::amp {

/// While it lives, ops called on this thread convert float32, float16 and bfloat16 operands:
/// products, convolutions and attention to `type`; sums, norms, softmax, losses, exponentials and
/// logarithms to float32. The rest computes in the types it is given. Parameters stay float32, and
/// so do their gradients: the conversion is a recorded op with a derivative. A compiled function
/// has a trace for each policy it is called under.
class Autocast {
 public:
  /// bfloat16 or float16; nothing: ops inside compute in the types they are given.
  explicit Autocast(std::optional<DType> type = bfloat16);
  ~Autocast();
  Autocast(const Autocast&) = delete;

 private:
  DType outer_;
};

/// The narrow type in force on this thread, if any.
std::optional<DType> autocast_type();

}  // namespace tn::amp
