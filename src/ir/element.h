#pragma once
// One element in memory as a number, and as text.
#include <string>
#include <string_view>

#include "tenon/shape.h"

namespace tn {

Scalar element_at(DType dtype, const void* at);
/// Whether a number may become an element of a type: integers must be among those of an integer
/// type. Other numbers are converted, and may round.
bool fits(const Scalar& number, DType type);
/// Fails as `op` where it may not: wrapping would surprise.
void check_fits(std::string_view op, const Scalar& number, DType type);

/// As Python writes it, with so many significant digits: "True", "3", "0.25", "1-2j", "nan".
std::string to_text(const Scalar& s, int digits);

}  // namespace tn
