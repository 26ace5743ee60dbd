#pragma once
// The lock of flushes: waiting for it can be interrupted, and a fork does not wait for a holder
// that itself waits for the host.
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace tn {

class FlushLock {
 public:
  bool try_lock() {
    uint8_t free = 0;
    return state_.compare_exchange_strong(free, kHeld, std::memory_order_acquire,
                                          std::memory_order_relaxed);
  }
  /// Looks now and then whether the user wants to stop, and throws then.
  void lock() {
    if (!try_lock()) wait();
  }
  void unlock() {
    uint8_t held = kHeld;
    if (!state_.compare_exchange_strong(held, 0, std::memory_order_release,
                                        std::memory_order_relaxed))
      hand_over();
  }

  bool is_fork_waiting() const { return forking_.load(std::memory_order_relaxed); }
  /// The holder waits for the host, and has no other lock: a fork may happen from construction to
  /// destruction. May be nested.
  class Paused {
   public:
    explicit Paused(FlushLock& lock);
    ~Paused();

   private:
    FlushLock& lock_;
  };

  /// Waits until it is free, or its holder is paused. Nothing of it changes until after_fork().
  void before_fork(bool is_holder);
  void after_fork();
  bool is_held() const { return state_.load(std::memory_order_relaxed) & kHeld; }

 private:
  static constexpr uint8_t kHeld = 1;
  static constexpr uint8_t kWanted = 2;  // by a thread that waits or forks: then under the mutex

  void wait();
  void hand_over();
  void stop_waiting();

  std::atomic<uint8_t> state_ = 0;
  std::mutex mutex_;  // of what follows
  std::condition_variable freed_, quiet_;
  int waiting_ = 0, paused_ = 0;
  std::atomic<bool> forking_ = false;
};

}  // namespace tn
