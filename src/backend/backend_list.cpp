// The kinds of device that there are: a line for each.
#include <algorithm>
#include <array>

#include "backend/cpu/cpu_backend.h"
#include "backend/cuda/cuda_backend.h"
#include "plan/library.h"

namespace tn {

using GetBackend = const Backend& (*)();
static constexpr GetBackend kBackends[] = {cpu::backend, cuda::backend};  // by DeviceKind

std::span<const Backend* const> backends() {
  static const auto all = [] {
    std::array<const Backend*, std::size(kBackends)> found;
    std::ranges::transform(kBackends, found.begin(), [](GetBackend get) { return &get(); });
    return found;
  }();
  return all;
}

// Without a static that is made on first use: a fork while another thread makes it would leave it
// half-made in the child.
const Backend& backend_of(const Target& target) {
  return kBackends[static_cast<size_t>(target.kind)]();
}

const LibraryKernel* library_kernel(const OpDef& op, Types in, const Target& target) {
  return backend_of(target).library_kernel(op, in, target);
}

Target host_target() { return cpu::backend().here(); }

}  // namespace tn
