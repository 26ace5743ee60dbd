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

/// Sets them until the end of the scope.
class LocalGroupsScope {
 public:
  explicit LocalGroupsScope(std::span<const LocalGroup> groups)
      : before_(std::exchange(local_groups, groups)) {}
  ~LocalGroupsScope() { local_groups = before_; }
  LocalGroupsScope(const LocalGroupsScope&) = delete;

 private:
  std::span<const LocalGroup> before_;
};

}  // namespace tn::workers
