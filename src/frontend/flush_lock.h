#pragma once
// The lock of flushes: waiting for it can be interrupted, and a fork does not wait for a holder
// that itself waits for the host.
#include <atomic>
#include <condition_variable>
#include <mutex>

namespace tn {

class FlushLock {
 public:
  bool try_lock();
  /// Looks now and then whether the user wants to stop, and throws then.
  void lock();
  void unlock();

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

  /// Waits until no thread holds it, or the holder is paused. Nothing of it changes until
  /// after_fork().
  void before_fork(bool is_holder);
  void after_fork();
  bool is_held() const { return held_; }

 private:
  std::mutex mutex_;
  std::condition_variable freed_, quiet_;
  bool held_ = false;
  int paused_ = 0;
  std::atomic<bool> forking_ = false;
};

}  // namespace tn
