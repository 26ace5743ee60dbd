// Copies to a GPU on a stream of their own, beside work that is under way.
#include <algorithm>
#include <cstring>

#include "backend/cuda/gpu.h"
#include "backend/cuda/step_times.h"
#include "base/error.h"

namespace tn::cuda {

/// Under the lock.
void Gpu::make_copies_wait(uint64_t used) {
  if (used <= done()) return;
  if (used > given_) return make_wait_for_all(copying);  // also for an allocation
  mark_for(used);
  check(driver, work_.make_wait(copying, used), "cuStreamWaitValue32");
}

uint64_t Gpu::copy_ahead(Address to, const void* from, size_t bytes, uint64_t used) {
  CopyTime time("copy to the device", bytes);
  require_own_process();
  enter();
  uint64_t number = 0;
  for (size_t at = 0; at < bytes;) {
    size_t some = std::min(bytes - at, Staging::kPieceBytes);
    Staging::Piece piece = staging_.take();
    std::memcpy(piece.at, static_cast<const char*>(from) + at, some);
    {
      std::lock_guard lock(mutex_);
      if (!broken_.empty()) throw_internal(broken_);
      if (at == 0) make_copies_wait(used);
      Result result = driver.cuMemcpyHtoDAsync_v2(to + at, piece.at, some, copying);
      if (result == kSuccess) result = copying_.mark(copies_ + 1);
      if (result != kSuccess) fail_broken(result);
      piece.work = number = kCopyBit | ++copies_;
    }
    at += some;
  }
  return number;
}

void Gpu::join(uint64_t number) {
  if (has_joined(number)) return;
  uint64_t copy = copy_of(number);
  enter();
  std::lock_guard lock(mutex_);
  check(driver, copying_.make_wait(stream, copy), "cuStreamWaitValue32");
  if (joined_.load() < copy) joined_.store(copy, std::memory_order_release);
}

}  // namespace tn::cuda
