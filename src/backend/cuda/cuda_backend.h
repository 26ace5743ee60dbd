#pragma once
// NVIDIA GPUs as a kind of device: targets are the architectures that code is made for.
#include "backend/cuda/driver.h"
#include "plan/backend.h"

namespace tn::cuda {

const Backend& backend();

/// "sm_90" is 90, "ptx_80" -80: text that the driver assembles, for that GPU and all later ones.
/// 0 has no code of its own: the interpreter of the host runs its kernels (tests).
constexpr Target target_of(int architecture) {
  return {DeviceKind::cuda, static_cast<int16_t>(architecture)};
}
constexpr int architecture_of(const Target& target) {
  return target.arch < 0 ? -target.arch : target.arch;
}
constexpr bool is_portable(const Target& target) { return target.arch < 0; }

/// The highest target that a GPU of the machine runs.
Target target_of_device(const Driver& driver, int index);

}  // namespace tn::cuda
