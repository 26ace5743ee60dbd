#include "workers/world.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "base/error.h"
#include "workers/shared_transport.h"

namespace tn::workers {
namespace {

/// -1: it is not set.
int number_variable(const char* variable) {
  const char* text = std::getenv(variable);
  if (!text || !*text) return -1;
  int value = -1;
  const char* end = text + std::strlen(text);
  auto [stopped, error] = std::from_chars(text, end, value);
  if (error != std::errc() || stopped != end || value < 0)
    fail("workers: {} is not a number: {}", variable, text);
  return value;
}

std::unique_ptr<Transport> open_world() {
  int rank = number_variable("TENON_RANK"), size = number_variable("TENON_SIZE");
  int file = number_variable("TENON_WORLD_MEMORY");
  if (rank < 0 && size < 0) return std::make_unique<SharedTransport>(WorldMemory::make(1), 0);
  if (rank < 0 || size < 1 || rank >= size || file < 0)
    fail(Hint{"start the program with `tenon launch -n 4 program.py`"},
         "workers: the environment is incomplete: TENON_RANK={}, TENON_SIZE={}, "
         "TENON_WORLD_MEMORY={}",
         rank, size, file);
  std::shared_ptr<WorldMemory> memory = WorldMemory::open(file);
  if (memory->size() != size)
    fail("workers: TENON_SIZE is {}, but the launcher started {}", size, memory->size());
  return std::make_unique<SharedTransport>(std::move(memory), rank);
}

struct Groups {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<Transport>, std::less<>> by_name;
  std::map<std::string, int, std::less<>> splits;  // how often a group was split
};

Groups& groups() {
  static Groups* const made = new Groups;  // for the life of the process
  return *made;
}

}  // namespace

Transport& group(std::string_view name) {
  std::lock_guard lock(groups().mutex);
  auto& by_name = groups().by_name;
  auto found = by_name.find(name);
  if (found == by_name.end() && name == kWorld) found = by_name.emplace(name, open_world()).first;
  if (found == by_name.end()) fail("workers: there is no group '{}'", name);
  return *found->second;
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
