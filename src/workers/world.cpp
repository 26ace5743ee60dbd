#include "workers/world.h"

#include <map>
#include <mutex>

#include "base/at_fork.h"
#include "base/error.h"
#include "workers/launch_environment.h"
#include "workers/local_groups.h"
#include "workers/machines_transport.h"
#include "workers/shared_transport.h"

namespace tn::workers {
namespace {

std::unique_ptr<Transport> open_world() {
  LaunchEnvironment launch = find_launch();
  if (launch.by == LaunchEnvironment::By::mpi) return open_machines(launch);
  if (launch.by == LaunchEnvironment::By::nobody)
    return std::make_unique<SharedTransport>(WorldMemory::make(1), 0);
  std::shared_ptr<WorldMemory> memory = WorldMemory::open(launch.memory);
  if (memory->size() != launch.size)
    fail("workers: TENON_SIZE is {}, but the launcher started {}", launch.size, memory->size());
  return std::make_unique<SharedTransport>(std::move(memory), launch.rank);
}

struct Groups {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<Transport>, std::less<>> by_name;
  std::map<std::string, int, std::less<>> splits;  // how often a group was split
};

Groups& groups() {
  static Groups& only = guarded_for_process<Groups>(3);
  return only;
}

}  // namespace

Transport* find_group(std::string_view name) {
  for (const LocalGroup& local : local_groups)
    if (local.name == name) return local.transport;
  std::lock_guard lock(groups().mutex);
  auto& by_name = groups().by_name;
  auto found = by_name.find(name);
  if (found == by_name.end() && name == kWorld) found = by_name.emplace(name, open_world()).first;
  return found == by_name.end() ? nullptr : found->second.get();
}

Transport& group(std::string_view name) {
  Transport* found = find_group(name);
  if (!found) fail("workers: there is no group '{}'", name);
  return *found;
}

std::string split_group(std::string_view parent, int color, int key) {
  std::unique_ptr<Transport> part = group(parent).split(color, key);
  std::lock_guard lock(groups().mutex);
  int& count = groups().splits[std::string(parent)];
  std::string name = format("{}/{}.{}", parent, count++, color);
  groups().by_name.emplace(name, std::move(part));
  return name;
}

}  // namespace tn::workers
