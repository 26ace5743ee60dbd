#pragma once
// The CPU as a kind of device: its targets are the levels that code is made for.
#include "backend/cpu/cpu_level.h"
#include "plan/backend.h"

namespace tn::cpu {

const Backend& backend();

constexpr Target target_of(CpuLevel level) {
  return {DeviceKind::cpu, static_cast<int16_t>(level)};
}
constexpr CpuLevel level_of(const Target& target) { return static_cast<CpuLevel>(target.arch); }

}  // namespace tn::cpu
