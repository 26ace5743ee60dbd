#pragma once
// The limit on recorded ops before evaluation starts.
#include <cstdint>

namespace tn {

/// The most pending ops on a path; an op beyond is computed when it is called, with all behind it.
/// With 0 every op is: op-by-op execution, to compare with. Returns the former number.
uint32_t set_longest_pending(uint32_t ops);

}  // namespace tn
