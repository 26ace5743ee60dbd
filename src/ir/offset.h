#pragma once
// Arithmetic of symbolic integers beyond what sizes need: Python computes with sizes.
#include "ir/dim.h"

namespace tn {

Offset times(Offset a, Offset b);
/// a // b and a % b as Python has them, for b >= 1.
Offset floor_quotient(Offset a, Offset b);
Offset floor_remainder(Offset a, Offset b);

}  // namespace tn
