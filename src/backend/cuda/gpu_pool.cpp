// Memory of a GPU.
#include <algorithm>
#include <bit>

#include "backend/cuda/gpu.h"
#include "base/at_fork.h"
#include "base/error.h"
#include "runtime/memory_use.h"

namespace tn::cuda {

struct Pool::Block {
  Pool* pool;
  Address at;
  size_t capacity, requested;
  uint64_t used = Gpu::kAllWork;  // the last work that may use it
  uint64_t copy = 0;              // that may be under way to it
};

Pool::Pool(Gpu& gpu) : gpu_(gpu) {}

void Pool::guard() { guarded_at_fork(mutex_, kInnermost); }

size_t Pool::class_of(size_t bytes) {
  constexpr size_t kSmallest = 512;
  if (bytes <= kSmallest) return kSmallest;
  size_t step = std::max(std::bit_floor(bytes) / 8, kSmallest);
  return (bytes + step - 1) / step * step;
}

Result Pool::allocate(size_t bytes, Address& at) {
  return gpu_.driver.cuMemAllocAsync(&at, bytes, gpu_.stream);
}

/// A kept block, or a new one; null: there is no memory. Under the lock.
Pool::Block* Pool::find(size_t bytes) {
  auto at = kept_.find(bytes);
  if (at != kept_.end()) {
    // One to which a copy is under way that no work waits for is left alone.
    auto is_free = [&](const Block* block) { return gpu_.has_joined(block->copy); };
    std::vector<Block*>& blocks = at->second;
    auto last = std::find_if(blocks.rbegin(), blocks.rend(), is_free);
    if (last != blocks.rend()) {
      Block* block = *last;
      blocks.erase(last.base() - 1);
      kept_bytes_ -= block->capacity;
      block->copy = 0;
      return block;
    }
  }
  Address address = 0;
  if (allocate(bytes, address) != kSuccess) return nullptr;
  return new Block{this, address, bytes, 0};
}

/// By default what is free at first use, with something left to others. Under the lock.
size_t Pool::limit() {
  if (limit_ || default_limit_) return limit_ ? limit_ : default_limit_;
  constexpr size_t kForOthers = size_t{512} << 20;
  size_t free = 0, total = 0;
  gpu_.enter();
  check(gpu_.driver, gpu_.driver.cuMemGetInfo_v2(&free, &total), "cuMemGetInfo");
  return default_limit_ = free > kForOthers ? free - kForOthers : free;
}

BufferRef Pool::take(Device device, size_t bytes) {
  gpu_.require_own_process();
  gpu_.enter();
  std::unique_lock lock(mutex_);
  auto refuse = [&] {
    size_t active = active_;
    size_t most = limit();
    lock.unlock();
    fail(Fault::memory, "cuda:{}: not enough memory: {} requested, {} active, limit {}", gpu_.index,
         bytes_text(bytes), bytes_text(active), bytes_text(most));
  };
  if (bytes > limit() || active_ + bytes > limit()) refuse();
  size_t capacity = class_of(bytes);
  Block* block = find(capacity);
  if (!block && kept_bytes_ > 0) {
    lock.unlock();
    clear();
    lock.lock();
    block = find(capacity);
  }
  if (!block) refuse();
  block->requested = bytes;
  active_ += bytes;
  peak_ = std::max(peak_, active_);
  lock.unlock();
  BufferRef made = adopt(reinterpret_cast<void*>(block->at), std::max<size_t>(bytes, 16), block,
                         &Pool::give_back, false);
  made->bytes = bytes;
  made->device = device;
  return made;
}

void Pool::give_back(void* owner) {
  auto* block = static_cast<Block*>(owner);
  Pool& pool = *block->pool;
  if (!pool.gpu_.is_own_process()) return;  // it is the parent's
  block->used = pool.gpu_.submitted();
  std::lock_guard lock(pool.mutex_);
  pool.active_ -= block->requested;
  pool.kept_bytes_ += block->capacity;
  pool.kept_[block->capacity].push_back(block);
}

uint64_t Pool::last_use(const Buffer& buffer) {
  bool is_own = buffer.owner && buffer.release_owner == &Pool::give_back;
  return is_own ? static_cast<const Block*>(buffer.owner)->used : Gpu::kAllWork;
}

void Pool::set_copy(const Buffer& buffer, uint64_t number) {
  if (buffer.owner && buffer.release_owner == &Pool::give_back)
    static_cast<Block*>(buffer.owner)->copy = number;
}

void Pool::clear() {
  gpu_.enter();
  std::map<size_t, std::vector<Block*>> all;
  {
    std::lock_guard lock(mutex_);
    all = std::move(kept_);
    kept_.clear();
    kept_bytes_ = 0;
  }
  if (all.empty()) return;
  gpu_.driver.cuStreamSynchronize(gpu_.copying);  // which writes to some of them
  for (auto& [capacity, blocks] : all)
    for (Block* block : blocks) {
      gpu_.driver.cuMemFreeAsync(block->at, gpu_.stream);
      delete block;
    }
  gpu_.driver.cuStreamSynchronize(gpu_.stream);
  DeviceNumber device = 0;
  MemoryPool pool = nullptr;
  if (gpu_.driver.cuDeviceGet(&device, gpu_.index) == kSuccess &&
      gpu_.driver.cuDeviceGetDefaultMemPool(&pool, device) == kSuccess)
    gpu_.driver.cuMemPoolTrimTo(pool, 0);
}

MemoryUse Pool::use() {
  std::lock_guard lock(mutex_);
  return {active_, peak_, kept_bytes_, limit()};
}

void Pool::reset_peak() {
  std::lock_guard lock(mutex_);
  peak_ = active_;
}

size_t Pool::set_limit(size_t bytes) {
  std::lock_guard lock(mutex_);
  size_t before = limit();
  limit_ = bytes;
  return before;
}

}  // namespace tn::cuda
