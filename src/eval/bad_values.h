#pragma once
// Bad values: searches results for NaN, optionally for infinities, and finds the op that made them.
#include <atomic>

#include "observe/check.h"
#include "tenon/debug.h"

namespace tn {

/// What results are looked through for, in the whole process.
extern std::atomic<BadValues> sought_values;
inline bool is_looking() {
  return sought_values.load(std::memory_order_relaxed) != BadValues::none;
}

/// Fails if one of `outputs` has what is looked for. The error names the op that made it from
/// operands that have none, found by evaluating the graph op by op.
void check_values(const CheckedRun& run, std::span<const Bound> outputs);

}  // namespace tn
