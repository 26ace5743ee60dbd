#pragma once
// One element in memory as a number, and as text.
#include <string>

#include "tenon/shape.h"

namespace tn {

Scalar element_at(DType dtype, const void* at);
/// Whether an integer is one of an integer type.
bool fits(const Scalar& integer, DType type);

/// As Python writes it, with so many significant digits: "True", "3", "0.25", "1-2j", "nan".
std::string to_text(const Scalar& s, int digits);

}  // namespace tn
