// The kinds of device that there are: a line for each.
#include "backend/cpu/backend.h"
#include "base/error.h"
#include "plan/library.h"

namespace tn {

std::span<const Backend* const> backends() {
  static const Backend* const all[] = {&cpu::backend()};  // by DeviceKind
  return all;
}

const Backend& backend_of(const Target& target) {
  return *backends()[static_cast<size_t>(target.kind)];
}

const LibraryKernel* library_kernel(const OpDef& op, Types in) {
  return cpu::backend().library_kernel(op, in);
}

Target host_target() { return cpu::backend().here(); }

}  // namespace tn
