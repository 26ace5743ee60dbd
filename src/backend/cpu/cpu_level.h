#pragma once
// Which of the three compiled instruction set levels this machine runs.
#include <cstdint>

namespace tn {

/// The x86-64 micro-architecture levels the library's kernels are compiled for.
enum class CpuLevel : uint8_t { v2, v3, v4 };

/// The level in use: what the processor and the system support, or a lower one set by
/// TENON_CPU_LEVEL=v2|v3|v4. Found once; results never depend on it.
CpuLevel cpu_level();

/// The best level of this machine, whatever the environment asks for.
CpuLevel best_cpu_level();

/// The variant for `level`; a kernel exists once per level and is chosen with this.
template <class T>
const T& at_level(CpuLevel level, const T& v2, const T& v3, const T& v4) {
  return level == CpuLevel::v4 ? v4 : level == CpuLevel::v3 ? v3 : v2;
}

template <class T>
const T& at_level(const T& v2, const T& v3, const T& v4) {
  return at_level(cpu_level(), v2, v3, v4);
}

}  // namespace tn
