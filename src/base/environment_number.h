#pragma once
// Variables of the environment that are numbers.
#include <cstdint>

namespace tn {

/// What the variable says. A wrong value is told and ignored: it cannot be an error, since it is
/// read before anybody could catch one. With `least` 0 it is a switch: 1, or 0.
int64_t environment_number(const char* name, int64_t least, int64_t otherwise);

}  // namespace tn
