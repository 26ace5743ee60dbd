#pragma once
// What memory the library holds, for users (tenon/memory.h) and in messages.
#include <string>

#include "tenon/memory.h"

namespace tn {

/// "1.50 GiB".
std::string bytes_text(size_t bytes);

}  // namespace tn
