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

/// What the plan that this thread runs was given by the process.
inline constinit thread_local GivenValues given_values = {};

/// Sets them until the end of the scope.
class LocalGroupsScope {
 public:
  explicit LocalGroupsScope(std::span<const LocalGroup> groups, const GivenValues& given = {})
      : before_(std::exchange(local_groups, groups)),
        given_before_(std::exchange(given_values, given)) {}
  ~LocalGroupsScope() { local_groups = before_, given_values = given_before_; }
  LocalGroupsScope(const LocalGroupsScope&) = delete;

 private:
  std::span<const LocalGroup> before_;
  GivenValues given_before_;
};

}  // namespace tn::workers
