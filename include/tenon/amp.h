#pragma once
// Mixed precision: products in a narrow type; long sums, exponentials and quotients in float32.
#include <optional>

#include "tenon/dtype.h"

namespace tn::amp {

/// During its lifetime, ops called on this thread convert float32, float16 and bfloat16 operands:
/// products, convolutions and attention to `type`; sums, norms, softmax, losses, exponentials and
/// logarithms to float32. Other ops keep the types of their operands. Parameters stay float32, and
/// so do their gradients: the conversion is a recorded op with a derivative. A compiled function
/// has one trace per policy.
class Autocast {
 public:
  /// bfloat16 or float16; no value: ops keep the types of their operands.
  explicit Autocast(std::optional<DType> type = bfloat16);
  ~Autocast();
  Autocast(const Autocast&) = delete;

 private:
  DType outer_;
};

/// The active narrow type of this thread, if any.
std::optional<DType> autocast_type();

}  // namespace tn::amp
