// Copies to a GPU on a stream of their own, beside work that is under way.
#include <algorithm>
#include <cstring>

#include "backend/cuda/gpu.h"
#include "backend/cuda/step_times.h"
#include "base/error.h"

namespace tn::cuda {

/// Its own, or that of a later copy if the event was used again. Under the lock.
EventHandle Gpu::event_of_copy(uint64_t copy) const {
  uint64_t oldest = copies_ > kMostCopies ? copies_ - kMostCopies + 1 : 1;
  return copy_events_[std::max(copy, oldest) % kMostCopies];
}

void Gpu::look_at_copy(uint64_t copy) {
  if (!broken_.empty()) throw_internal(broken_);
  Result result = driver.cuEventQuery(event_of_copy(copy));
  if (result == kNotReady) return;
  if (result != kSuccess) fail_broken(result);
  if (copies_done_.load() < copy) copies_done_.store(copy, std::memory_order_release);
}

/// Under the lock.
void Gpu::make_copies_wait(uint64_t used) {
  if (used <= done()) return;
  EventHandle event = nullptr;
  bool is_once = used > given_;  // also for what has no number, as an allocation
  if (is_once) {
    check(driver, driver.cuEventCreate(&event, kEventNoTiming), "cuEventCreate");
    check(driver, driver.cuEventRecord(event, stream), "cuEventRecord");
  } else {
    if (marked_ < used) mark();
    event = std::ranges::lower_bound(marks_, used, {}, &Mark::number)->event;
  }
  Result result = driver.cuStreamWaitEvent(copying, event, 0);
  if (is_once) driver.cuEventDestroy_v2(event);
  check(driver, result, "cuStreamWaitEvent");
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
      if (result == kSuccess)
        result = driver.cuEventRecord(copy_events_[(copies_ + 1) % kMostCopies], copying);
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
  check(driver, driver.cuStreamWaitEvent(stream, event_of_copy(copy), 0), "cuStreamWaitEvent");
  if (joined_.load() < copy) joined_.store(copy, std::memory_order_release);
}

}  // namespace tn::cuda
