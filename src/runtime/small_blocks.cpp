// Blocks below 1 MiB: size classes, a bounded free list per thread and class, and a shared one.

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <mutex>

#include "base/at_fork.h"
#include "runtime/memory_blocks.h"

namespace tn {
namespace {

// Four classes per doubling, from 64 bytes (a header alone) to 1 MiB and a header.
constexpr size_t kClasses = 60;
constexpr size_t kSharedLimit = size_t{64} << 20;

constexpr size_t class_of(size_t bytes) {
  if (bytes <= 256) return (bytes + 63) / 64 - (bytes != 0);
  size_t top = static_cast<size_t>(std::bit_width(bytes - 1)) - 1;  // 2^top < bytes <= 2^(top+1)
  return (top - 8) * 4 + ((bytes - 1) >> (top - 2)) % 4 + 4;
}

constexpr size_t class_bytes(size_t index) {
  if (index < 4) return (index + 1) * 64;
  size_t top = (index - 4) / 4 + 8;
  return (size_t{1} << top) + ((index - 4) % 4 + 1) * (size_t{1} << (top - 2));
}

static_assert([] {
  for (size_t index = 0; index < kClasses; ++index)
    if (class_of(class_bytes(index)) != index) return false;
  return true;
}());
static_assert(class_of(0) == 0 && class_of(1) == 0 && class_of(64) == 0 && class_of(65) == 1);
static_assert(class_of(256) == 3 && class_bytes(class_of(257)) == 320);
static_assert(class_bytes(class_of(kLargeBytes + 64)) >= kLargeBytes + 64);
static_assert(class_of(kLargeBytes + 64) < kClasses);

constexpr size_t most_kept(size_t index) {
  return std::clamp<size_t>((size_t{256} << 10) / class_bytes(index), 2, 64);
}

struct FreeBlock {
  FreeBlock* next;
};

struct FreeList {
  FreeBlock* head = nullptr;
  size_t count = 0;

  void push(void* block) {
    head = ::new (block) FreeBlock{head};
    ++count;
  }
  void* pop() {
    FreeBlock* block = head;
    head = block->next;
    --count;
    return block;
  }
};

struct ThreadCache {
  std::array<FreeList, kClasses> lists;
  std::atomic<size_t> bytes{0};  // written by its thread, read by those who count
  ThreadCache* next = nullptr;
  ThreadCache* previous = nullptr;

  void add(size_t change) {
    bytes.store(bytes.load(std::memory_order_relaxed) + change, std::memory_order_relaxed);
  }
};

// Buffers may be released after static objects are gone, so this one is never destroyed.
struct Shared {
  std::mutex mutex;
  std::array<FreeList, kClasses> lists;
  size_t bytes = 0;
  ThreadCache* threads = nullptr;

  // Both: the caller holds `mutex`.
  void keep(void* block, size_t index) {
    if (bytes + class_bytes(index) > kSharedLimit) return std::free(block);
    lists[index].push(block);
    bytes += class_bytes(index);
  }
  void* find(size_t index) {
    if (!lists[index].head) return nullptr;
    bytes -= class_bytes(index);
    return lists[index].pop();
  }
};

Shared& shared() {
  static auto& only = guarded_for_process<Shared>(kInnermost);
  return only;
}
// Before any other lock can be held.
[[maybe_unused]] Shared& small_made_at_load = shared();

void drop_lists(ThreadCache& cache, bool keep) {
  std::lock_guard lock(shared().mutex);
  for (size_t index = 0; index < kClasses; ++index)
    while (cache.lists[index].head) {
      void* block = cache.lists[index].pop();
      cache.add(-class_bytes(index));
      if (keep)
        shared().keep(block, index);
      else
        std::free(block);
    }
}

/// Registers a cache for the thread's life and hands its blocks on at the end.
struct CacheOwner {
  ThreadCache cache;

  CacheOwner() {
    std::lock_guard lock(shared().mutex);
    cache.next = shared().threads;
    if (cache.next) cache.next->previous = &cache;
    shared().threads = &cache;
  }
  ~CacheOwner();
};

// The pointer is valid only while the owner lives: blocks given back later, by destructors of other
// thread-local or static objects, go to the shared lists.
thread_local ThreadCache* this_cache = nullptr;
thread_local bool cache_gone = false;

/// Caches of threads that a child of fork does not have lie in memory that it frees.
void forget_threads_in_child() {
  shared().threads = this_cache;
  if (this_cache) this_cache->next = this_cache->previous = nullptr;
}
[[maybe_unused]] const bool kForgets = (in_child_after_fork(forget_threads_in_child), true);

CacheOwner::~CacheOwner() {
  this_cache = nullptr;
  cache_gone = true;
  drop_lists(cache, true);
  std::lock_guard lock(shared().mutex);
  (cache.previous ? cache.previous->next : shared().threads) = cache.next;
  if (cache.next) cache.next->previous = cache.previous;
}

ThreadCache* make_cache() {
  if (cache_gone) return nullptr;
  thread_local CacheOwner owner;
  return this_cache = &owner.cache;
}

[[gnu::noinline]] void* take_shared(ThreadCache* cache, size_t index) {
  size_t batch = cache ? most_kept(index) / 2 : 0;
  std::unique_lock lock(shared().mutex);
  void* block = shared().find(index);
  for (size_t i = 1; i < batch && shared().lists[index].head; ++i) {
    cache->lists[index].push(shared().find(index));
    cache->add(class_bytes(index));
  }
  lock.unlock();
  return block ? block : std::aligned_alloc(64, class_bytes(index));
}

[[gnu::noinline]] void give_shared(ThreadCache* cache, void* block, size_t index) {
  std::lock_guard lock(shared().mutex);
  shared().keep(block, index);
  if (!cache) return;
  for (size_t i = most_kept(index) / 2; i-- > 0;) {
    shared().keep(cache->lists[index].pop(), index);
    cache->add(-class_bytes(index));
  }
}

}  // namespace

void* take_small(size_t bytes, size_t& capacity) {
  size_t index = class_of(bytes);
  capacity = class_bytes(index);
  ThreadCache* cache = this_cache ? this_cache : make_cache();
  if (!cache || !cache->lists[index].head) return take_shared(cache, index);
  cache->add(-capacity);
  return cache->lists[index].pop();
}

void give_small(void* block, size_t capacity) {
  size_t index = class_of(capacity);
  ThreadCache* cache = this_cache ? this_cache : make_cache();
  if (!cache || cache->lists[index].count >= most_kept(index))
    return give_shared(cache, block, index);
  cache->lists[index].push(block);
  cache->add(capacity);
}

size_t kept_small_bytes() {
  std::lock_guard lock(shared().mutex);
  size_t sum = shared().bytes;
  for (ThreadCache* cache = shared().threads; cache; cache = cache->next)
    sum += cache->bytes.load(std::memory_order_relaxed);
  return sum;
}

void drop_kept_small() {
  if (this_cache) drop_lists(*this_cache, false);
  std::lock_guard lock(shared().mutex);
  for (size_t index = 0; index < kClasses; ++index)
    while (void* block = shared().find(index)) std::free(block);
}

}  // namespace tn
