// The kinds of device that there are. The CPU is always among them; backends of other kinds
// register themselves where they are linked.
#include <atomic>

#include "backend/cpu/cpu_backend.h"
#include "base/error.h"
#include "plan/library.h"

namespace tn {

// By DeviceKind. Without a static that is made on first use: a fork while another thread makes it
// would leave it half-made in the child.
static constinit std::atomic<GetBackend> kinds[static_cast<size_t>(DeviceKind::count)] = {
    cpu::backend};

void register_backend(DeviceKind kind, GetBackend get) { kinds[static_cast<size_t>(kind)] = get; }

std::vector<const Backend*> backends() {
  std::vector<const Backend*> all;
  for (const auto& kind : kinds)
    if (GetBackend get = kind) all.push_back(&get());
  return all;
}

const Backend& backend_of(const Target& target) {
  GetBackend get = kinds[static_cast<size_t>(target.kind)];
  invariant(get, "the target is of a kind of device that was not linked");
  return get();
}

const LibraryKernel* library_kernel(const OpDef& op, Types in, const Target& target) {
  return backend_of(target).library_kernel(op, in, target);
}

Target host_target() { return cpu::backend().here(); }

}  // namespace tn
