#include "backend/cpu/cpu_level.h"

#include <cpuid.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/error.h"

namespace tn {

// __builtin_cpu_supports also asks the system (XGETBV) whether it saves the wide registers. The two
// features it cannot name on every compiler are read from CPUID.
static bool has_f16c_and_lzcnt() {
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_F16C)) return false;
  return __get_cpuid(0x80000001, &a, &b, &c, &d) && (c & bit_ABM);
}

static CpuLevel detect() {
  __builtin_cpu_init();
  bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
            __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && has_f16c_and_lzcnt();
  if (!v3) return CpuLevel::v2;
  bool v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512vl");
  return v4 ? CpuLevel::v4 : CpuLevel::v3;
}

CpuLevel best_cpu_level() {
  static const CpuLevel level = detect();
  return level;
}

static CpuLevel choose() {
  const char* asked = std::getenv("TENON_CPU_LEVEL");
  if (!asked || !*asked) return best_cpu_level();
  std::string_view name = asked;
  if (name != "v2" && name != "v3" && name != "v4")
    fail("TENON_CPU_LEVEL: not one of v2, v3, v4: {}", name);
  CpuLevel level = name == "v2" ? CpuLevel::v2 : name == "v3" ? CpuLevel::v3 : CpuLevel::v4;
  return std::min(level, best_cpu_level());
}

CpuLevel cpu_level() {
  static const CpuLevel level = choose();
  return level;
}

}  // namespace tn
