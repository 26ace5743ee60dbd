#pragma once
// A plan as people read it.
#include "plan/plan.h"

namespace tn {

/// One line per block of memory and per step, with the user's lines.
///
///     block 0: 784.00 KiB, output
///     step 0: dot in0, in1 -> t0 at block 1 + 0  (train.py:3, in loss)
///     return t0, in1
std::string to_text(const Plan& plan);

}  // namespace tn
