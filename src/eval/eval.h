#pragma once
// Flushing: pending ops are keyed by their structure, compiled once per key, and run.
#include "base/interrupt.h"
#include "ir/node.h"
#include "plan/plan.h"

namespace tn {

/// Releases a host language's lock (Python's GIL) during a flush. Its other threads go on, and an
/// error may acquire it to name the user's line.
struct HostLock {
  void* (*leave)() = nullptr;
  void (*enter)(void*) = nullptr;
};
extern HostLock host_lock;

/// In force from construction to destruction, on a thread that may or may not hold the lock.
struct HostUnlocked {
  void* state = host_lock.leave ? host_lock.leave() : nullptr;
  HostUnlocked() = default;
  HostUnlocked(const HostUnlocked&) = delete;
  ~HostUnlocked() {
    if (host_lock.enter) host_lock.enter(state);
  }
};

/// Locks without the host's lock, which the thread that has this one may need. A stop point.
template <class Mutex>
void lock_or_stop(std::unique_lock<Mutex>& lock) {
  if (lock.try_lock()) return;
  HostUnlocked unlocked;
  // By the clock that TSan knows: it takes a lock that waits by the steady one for not locked.
  using Clock = std::chrono::system_clock;
  while (!lock.try_lock_until(Clock::now() + std::chrono::milliseconds(50))) stop_if_asked();
}

/// Computes the pending values behind `wanted`, and those between that the program holds.
void flush(std::span<const Tensor> wanted);
/// Stops what async_eval is computing. It stays pending.
void stop_async();
/// Where a computed value is.
Bound bound_of(const Slot& slot);

/// What the flush cache has seen.
struct FlushStats {
  uint64_t flushes = 0, hits = 0, plans = 0;
};
FlushStats flush_stats();
void clear_plans();

}  // namespace tn
