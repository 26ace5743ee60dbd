#include "frontend/flush_lock.h"

#include <chrono>

#include "base/interrupt.h"

namespace tn {

void FlushLock::wait() {
  constexpr auto kSlice = std::chrono::milliseconds(50);  // between looks at the user's interrupt
  std::unique_lock lock(mutex_);
  ++waiting_;
  while ((state_.fetch_or(kWanted, std::memory_order_acquire) & kHeld) || forking_) {
    if (freed_.wait_for(lock, kSlice) == std::cv_status::no_timeout) continue;
    lock.unlock();
    try {
      stop_if_asked();
    } catch (...) {
      lock.lock();
      stop_waiting();
      throw;
    }
    lock.lock();
  }
  state_.fetch_or(kHeld, std::memory_order_relaxed);
  stop_waiting();
}

void FlushLock::hand_over() {
  {
    std::lock_guard lock(mutex_);
    state_.fetch_and(static_cast<uint8_t>(~kHeld), std::memory_order_release);
    if (forking_) quiet_.notify_one();
  }
  freed_.notify_one();
}

void FlushLock::stop_waiting() {
  if (--waiting_ == 0 && !forking_)
    state_.fetch_and(static_cast<uint8_t>(~kWanted), std::memory_order_relaxed);
  else
    freed_.notify_one();  // which may have been meant for this thread
}

FlushLock::Paused::Paused(FlushLock& lock) : lock_(lock) {
  std::lock_guard inner(lock_.mutex_);
  ++lock_.paused_;
  lock_.quiet_.notify_one();
}

FlushLock::Paused::~Paused() {
  std::unique_lock inner(lock_.mutex_);
  lock_.freed_.wait(inner, [&] { return !lock_.forking_; });
  --lock_.paused_;
}

void FlushLock::before_fork(bool is_holder) {
  std::unique_lock lock(mutex_);
  forking_ = true;
  state_.fetch_or(kWanted, std::memory_order_relaxed);
  quiet_.wait(lock, [&] { return !is_held() || paused_ || is_holder; });
  lock.release();
}

void FlushLock::after_fork() {
  forking_ = false;
  if (!waiting_) state_.fetch_and(static_cast<uint8_t>(~kWanted), std::memory_order_relaxed);
  mutex_.unlock();
  freed_.notify_all();
}

}  // namespace tn
