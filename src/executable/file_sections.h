#pragma once
// Names of sections that hold code for devices other than the CPU.
#include <string>

#include "base/text.h"
#include "plan/target.h"

namespace tn {

/// The kernel sets that targets of GPUs share.
inline constexpr const char* kOtherPlan = "cuda";

/// Code of library kernels that libtenon_rt does not have, among those of kind `code`.
inline constexpr const char* kLibraryCode = "library";

}  // namespace tn
