// The kinds of device that there are: a line for each.
#include "backend/cpu/backend.h"
#include "base/error.h"

namespace tn {

std::span<const Backend* const> backends() {
  static const Backend* const all[] = {&cpu::backend()};  // by DeviceKind
  return all;
}

const Backend& backend_of(const Target& target) {
  return *backends()[static_cast<size_t>(target.kind)];
}

Target host_target() { return cpu::backend().here(); }

}  // namespace tn
