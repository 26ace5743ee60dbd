#pragma once
// Hardware by the names that people know it by.
#include <string>
#include <vector>

#include "runtime/cpu_level.h"

namespace tn {

/// The CPU level of a name: a level ("x86-64-v3"), "native", or a processor ("haswell", "zen4").
/// Fails for another, as `who`: one of a GPU says that its code comes with the GPU backend.
CpuLevel level_of_target(std::string_view name, std::string_view who);
/// Of several names: each level once, the lowest first.
std::vector<CpuLevel> levels_of_targets(const std::vector<std::string>& names,
                                        std::string_view who);

}  // namespace tn
