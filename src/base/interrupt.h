#pragma once
// Cancellation of long work by the user.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>

namespace tn {

/// How a host language asks its user, on the thread that its signals interrupt.
struct HostSignals {
  bool (*is_due)() = nullptr;      // whether it is time to check; true at intervals
  bool (*is_stopped)() = nullptr;  // whether the user wants to stop; runs none of the user's code
  void (*handle)() = nullptr;      // runs the user's handlers, and throws what they throw
};
extern HostSignals host_signals;

/// Cancels a thread of the library when it becomes true.
extern thread_local const std::atomic<bool>* stop_wanted;

struct Stopped : std::exception {
  const char* what() const noexcept override { return "stopped"; }
};

/// Set while a thread does what must be left before the user's code may run: called at its stop
/// points instead.
extern thread_local void (*own_stop_point)();

/// Called between the parts of long work, where nothing is left half-done.
void stop_if_asked();

/// Waits until `done`, which is called with the lock held. This is a stop point: what it throws
/// leaves the lock free.
template <class Done>
void wait_or_stop(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, Done done) {
  constexpr auto kSlice = std::chrono::milliseconds(50);  // between looks at the user's interrupt
  while (!changed.wait_for(lock, kSlice, done)) {
    lock.unlock();
    stop_if_asked();
    lock.lock();
  }
}

}  // namespace tn
