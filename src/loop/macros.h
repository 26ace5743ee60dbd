#pragma once
// Math operations as macros: a kernel whose exp, sin, pow, ... are spelled out in plain operations.
#include "loop/kernel.h"

namespace tn::loop {

/// The kernel with every value whose op is math replaced by its definition of loop/math.h: the same
/// bits for every input that is not NaN, NaN for NaN. The other values keep their order.
/// Values for which `is_kept` is true stay.
Kernel expand_math(const Kernel& kernel, bool (*is_kept)(const Value&) = nullptr);

}  // namespace tn::loop
