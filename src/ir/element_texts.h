#pragma once
// The texts of elements that are shown together.
#include <span>
#include <string>
#include <vector>

#include "tenon/printing.h"

namespace tn {

/// Texts of one width, with the points of floating numbers below each other:
/// "1.5 ", "0.25"; "  3", "100"; "1.5e-03+2.0e+00j".
std::vector<std::string> element_texts(DType dtype, std::span<const Scalar> elements,
                                       const PrintOptions& options);

}  // namespace tn
