#pragma once
// The groups that a worker belongs to while it runs a plan of a mesh: one for each axis.
#include <span>
#include <string>
#include <utility>

#include "runtime/transport.h"

namespace tn::workers {

struct LocalGroup {
  std::string name;  // of the axis
  Transport* transport;
  int first = -1, step = 1;  // its workers in the mesh: every `step`-th from the first
};

/// Of this thread. They come before those of world.h.
inline constinit thread_local std::span<const LocalGroup> local_groups = {};

/// What the collectives of a run are about, sorted by place, and what the run was given.
struct RunOrigins {
  std::span<const CallOrigin> calls = {};
  std::span<const Origin> given = {};
  uint64_t call = 0;  // of a function with explicit collectives: its number in this process
};
/// Of the run on this thread.
inline constinit thread_local RunOrigins run_origins = {};

/// Sets them until the end of the scope.
class LocalGroupsScope {
 public:
  explicit LocalGroupsScope(std::span<const LocalGroup> groups, const RunOrigins& origins = {})
      : before_(std::exchange(local_groups, groups)),
        origins_before_(std::exchange(run_origins, origins)) {}
  ~LocalGroupsScope() { local_groups = before_, run_origins = origins_before_; }
  LocalGroupsScope(const LocalGroupsScope&) = delete;

 private:
  std::span<const LocalGroup> before_;
  RunOrigins origins_before_;
};

}  // namespace tn::workers
