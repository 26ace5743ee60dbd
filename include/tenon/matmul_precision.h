#pragma once
// How GPUs compute products of float32.
#include <string_view>

namespace tn {

/// What products of float32 on GPUs may be: "highest", the default, is float32; "high" may round
/// operands to TF32 (10 bits of mantissa) for speed; "exact" has the bits of the CPU, for every
/// element type, by kernels that add in its order. CPUs compute them all the same. For the whole
/// process; plans that are made from now on take it, and compiled functions have a trace for each
/// setting. Returns the former one.
std::string_view set_matmul_precision(std::string_view precision);
std::string_view matmul_precision();

}  // namespace tn
