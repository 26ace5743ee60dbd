#pragma once
// Products of matrices as C.
#include <string>
#include <string_view>

#include "loop/step_source.h"

namespace tn::source {

/// `static void function(a, b, c)` for a dot of two tensors, with the bits of runtime/gemm.h.
std::string dot_c(const StepSource& step, std::string_view function);

}  // namespace tn::source
