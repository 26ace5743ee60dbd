#include "frontend/flush_lock.h"

#include <chrono>

#include "base/interrupt.h"

namespace tn {

bool FlushLock::try_lock() {
  std::lock_guard lock(mutex_);
  if (held_ || forking_) return false;
  return held_ = true;
}

void FlushLock::lock() {
  constexpr auto kSlice = std::chrono::milliseconds(50);  // between looks at the user's interrupt
  std::unique_lock lock(mutex_);
  while (held_ || forking_) {
    if (freed_.wait_for(lock, kSlice) == std::cv_status::no_timeout) continue;
    lock.unlock();
    stop_if_asked();
    lock.lock();
  }
  held_ = true;
}

void FlushLock::unlock() {
  {
    std::lock_guard lock(mutex_);
    held_ = false;
    if (forking_) quiet_.notify_one();
  }
  freed_.notify_one();
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
  quiet_.wait(lock, [&] { return !held_ || paused_ || is_holder; });
  lock.release();
}

void FlushLock::after_fork() {
  forking_ = false;
  mutex_.unlock();
  freed_.notify_all();
}

}  // namespace tn
