#pragma once
// The environment variables that the library reads, and what else decides how it runs.
#include <string>
#include <vector>

#include "backend/cpu/cpu_level.h"

namespace tn {

/// Variables that are set and begin with TENON_, but mean nothing: each with the known name nearest
/// to it, or "".
struct StrayVariable {
  std::string name, nearest;
};
std::vector<StrayVariable> stray_variables();

/// "x86-64-v4".
std::string level_name(CpuLevel level);
/// The processor, as it calls itself.
std::string cpu_model();

}  // namespace tn
