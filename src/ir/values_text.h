#pragma once
// Elements as people read them: "[[1, 2], [3, 4]]".
#include <string>

#include "ir/type.h"

namespace tn {

/// Of elements in row-major order; lines after the first begin with `indent` spaces.
std::string values_text(TypeRef type, const void* data, size_t indent = 0);

}  // namespace tn
