#pragma once
// The operations and monoids of LoopIR.
#include <cstdint>

namespace tn::loop {

// clang-format off
enum class Op : uint8_t {
  // leaves
  constant,   // `literal`
  argument,   // a scalar given at run time: number `a` of the call
  index,      // the value of the polynomial `index`, i64
  load,       // buffer[index] where `mask` holds, else 0
  // unary, on floats and integers alike where both make sense
  neg, abs, not_, floor, ceil, round, trunc, sqrt, is_nan,
  // unary math, on f32 and f64: macros over the operations above and below (loop/math.h)
  exp, exp2, expm1, log, log2, log10, log1p, rsqrt, cbrt, sin, cos, tan, asin, acos, atan,
  sinh, cosh, tanh, asinh, acosh, atanh, erf, erfc, erfinv, lgamma, sigmoid,
  gelu, gelu_slope,  // x times the normal distribution function of x, and the derivative of that
  // binary
  add, sub, mul, div,        // integer division truncates; by zero it gives 0
  rem,                       // of the truncating division; by zero it gives 0
  max, min,                  // a NaN operand is the result
  and_, or_, xor_,
  shl, shr,                  // shr keeps the sign; shifts by the width or more give 0 or the sign
  eq, ne, lt, le,            // give bool
  pow, atan2, hypot, logaddexp, nextafter, copysign,
  // ternary
  select, fma,
  // conversions: `type` is the target
  cast,     // float to integer saturates and takes NaN to 0; to bool: x != 0
  bitcast,  // between types of one size
  // over axes
  reduce, scan,
};
// clang-format on
inline constexpr int kOps = static_cast<int>(Op::scan) + 1;

enum class Monoid : uint8_t { add, mul, max, min, and_, or_, argmax, argmin };

}  // namespace tn::loop
