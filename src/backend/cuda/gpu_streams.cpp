// Work of other libraries on the same GPU, in the order of streams.
#include <algorithm>

#include "backend/cuda/gpu.h"
#include "base/error.h"

namespace tn::cuda {
namespace {

/// An event for one use. The driver keeps what waits for it after it is destroyed.
struct Once {
  explicit Once(const Driver& table) : driver(table) {
    check(driver, driver.cuEventCreate(&event, kEventNoTiming), "cuEventCreate");
  }
  ~Once() { driver.cuEventDestroy_v2(event); }
  Once(const Once&) = delete;
  const Driver& driver;
  EventHandle event = nullptr;
};

}  // namespace

/// By an event, which the driver knows too. Under the lock.
void Gpu::make_wait_for_all(Stream other) {
  Once once(driver);
  check(driver, driver.cuEventRecord(once.event, stream), "cuEventRecord");
  check(driver, driver.cuStreamWaitEvent(other, once.event, 0), "cuStreamWaitEvent");
}

void Gpu::lend(Stream other) {
  require_own_process();
  enter();
  std::lock_guard lock(mutex_);
  if (!broken_.empty()) throw_internal(broken_);
  make_wait_for_all(other);
}

void Gpu::follow(Stream other) {
  require_own_process();
  enter();
  Once once(driver);
  check(driver, driver.cuEventRecord(once.event, other), "cuEventRecord");
  std::lock_guard lock(mutex_);
  check(driver, driver.cuStreamWaitEvent(stream, once.event, 0), "cuStreamWaitEvent");
}

void Gpu::release_later(void* owner, void (*release)(void*)) {
  {
    std::lock_guard lock(mutex_);
    if (broken_.empty() && done() < given_) {
      borrowed_.push_back({given_, owner, release});
      borrowed_count_ = borrowed_.size();
      owner = nullptr;
    }
  }
  if (owner) release(owner);
  release_done();
}

/// Without the lock: what others do when they get memory back is not known. A later call does it
/// where another thread has the lock: readers do not wait for it.
void Gpu::release_done() {
  std::deque<Borrowed> due;
  {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return;
    auto is_used = [&](const Borrowed& b) { return broken_.empty() && b.number > done(); };
    auto first = std::ranges::find_if(borrowed_, is_used);
    std::ranges::move(borrowed_.begin(), first, std::back_inserter(due));
    borrowed_.erase(borrowed_.begin(), first);
    borrowed_count_ = borrowed_.size();
  }
  for (const Borrowed& b : due) b.release(b.owner);
}

}  // namespace tn::cuda
