#pragma once
// Variables of the environment that are numbers.
#include <cstdint>

namespace tn {

/// Reads an integer environment variable. An invalid value is reported and ignored: this runs
/// during static initialisation, where nothing can catch an exception. With `least` 0 it is a
/// switch: 1 or 0.
int64_t environment_number(const char* name, int64_t least, int64_t otherwise);

}  // namespace tn
