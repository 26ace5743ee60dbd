// Blocks from 1 MiB: 2 MiB-aligned mappings on huge pages, kept for reuse up to a limit.
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <vector>

#include "base/at_fork.h"
#include "runtime/memory_blocks.h"

namespace tn {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kIdle{1};

struct Kept {
  void* data = nullptr;
  size_t capacity = 0;
  Clock::time_point since = {};
  bool offered = false;  // the system may take its pages
};

// Never destroyed: buffers may be released after static objects are gone.
struct Cache {
  std::mutex mutex;
  std::vector<Kept> blocks;  // the most recently given last
  std::atomic<size_t> bytes{0};
  size_t limit = 0;

  void trim(size_t most) {
    size_t dropped = 0;
    while (bytes > most) {
      munmap(blocks[dropped].data, blocks[dropped].capacity);
      bytes -= blocks[dropped++].capacity;
    }
    blocks.erase(blocks.begin(), blocks.begin() + static_cast<std::ptrdiff_t>(dropped));
  }

  /// Blocks that were not used for a while stay mapped, and the system may take their pages when it
  /// needs some: until then they cost no more than any other to write again.
  void offer_idle(Clock::time_point now) {
    for (Kept& kept : blocks) {
      if (now - kept.since < kIdle) break;  // and so are all that follow
      if (!std::exchange(kept.offered, true)) madvise(kept.data, kept.capacity, MADV_FREE);
    }
  }

  /// The smallest block that fits without wasting more than a quarter, the most recent of equals.
  Kept take(size_t capacity) {
    auto best = blocks.end();
    size_t most = capacity + std::max(capacity / 4, kHugePage);
    for (auto at = blocks.begin(); at != blocks.end(); ++at) {
      if (at->capacity < capacity || at->capacity > most) continue;
      if (best == blocks.end() || at->capacity <= best->capacity) best = at;
    }
    if (best == blocks.end()) return {};
    Kept found = *best;
    blocks.erase(best);
    bytes -= found.capacity;
    return found;
  }
};

Cache& cache() {
  static auto& only = guarded_for_process<Cache>(kInnermost);
  return only;
}
// Before any other lock can be held.
[[maybe_unused]] Cache& large_made_at_load = cache();

void* map_aligned(size_t capacity) {
  size_t span = capacity + kHugePage;
  void* mapped = mmap(nullptr, span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  char* begin = static_cast<char*>(mapped);
  size_t before = (kHugePage - reinterpret_cast<uintptr_t>(begin) % kHugePage) % kHugePage;
  if (before) munmap(begin, before);
  munmap(begin + before + capacity, kHugePage - before);
  madvise(begin + before, capacity, MADV_HUGEPAGE);
  return begin + before;
}

}  // namespace

LargeBlock take_large(size_t bytes) {
  size_t capacity = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  {
    std::lock_guard lock(cache().mutex);
    if (Kept kept = cache().take(capacity); kept.data) return {kept.data, kept.capacity, true};
  }
  void* data = map_aligned(capacity);
  if (!data) {
    trim_kept_large(0);
    data = map_aligned(capacity);
  }
  return {data, capacity, false};
}

void give_large(void* data, size_t capacity) {
  std::lock_guard lock(cache().mutex);
  if (capacity > cache().limit) {
    munmap(data, capacity);
    return;
  }
  Clock::time_point now = Clock::now();
  cache().trim(cache().limit - capacity);
  cache().offer_idle(now);
  cache().blocks.push_back({data, capacity, now});
  cache().bytes += capacity;
}

size_t kept_large_bytes() { return cache().bytes; }

void trim_kept_large(size_t bytes) {
  std::lock_guard lock(cache().mutex);
  cache().trim(bytes);
}

size_t set_kept_large_limit(size_t bytes) {
  std::lock_guard lock(cache().mutex);
  cache().trim(bytes);
  return std::exchange(cache().limit, bytes);
}

}  // namespace tn
