#include "backend/llvm/kernel_cache.h"

#include <chrono>

#include "base/at_fork.h"
#include "base/interrupt.h"
#include "runtime/threads.h"

namespace tn::codegen {

KernelCache& KernelCache::shared() {
  static KernelCache& only = *[] {
    auto* made = new KernelCache;  // outlives kernels that run while the process ends
    guarded_at_fork(made->mutex_, 11);
    return made;
  }();
  // A child of fork has not the threads that were compiling.
  static const bool registered = (in_child_after_fork([] { only.making_.clear(); }), true);
  (void)registered;
  return only;
}

std::vector<KernelCache::Kernel> KernelCache::get(const std::vector<std::string>& keys,
                                                  FunctionRef<Made(size_t)> make,
                                                  KernelCounts* counts) {
  std::vector<Kernel> found(keys.size());
  std::vector<size_t> missing, awaited;
  missing.reserve(keys.size()), awaited.reserve(keys.size());
  KernelCounts own;
  try {
    std::unique_lock lock(mutex_);
    for (size_t i = 0; i < keys.size(); ++i) {
      if (const Kernel* known = find(keys[i]))
        found[i] = *known;
      else
        (making_.insert(keys[i]).second ? missing : awaited).push_back(i);
    }
    lock.unlock();
    parallel_for(static_cast<int64_t>(missing.size()), [&](int64_t k) {
      stop_if_asked();
      size_t i = missing[static_cast<size_t>(k)];
      auto begin = std::chrono::steady_clock::now();
      Made made = make(i);
      std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      found[i] = made.kernel;
      publish(keys[i], made, took.count(), own);
    });
  } catch (...) {
    for (size_t i : missing) withdraw(keys[i]);
    throw;
  }
  own.from_memory = static_cast<int64_t>(keys.size() - missing.size());
  for (size_t i : awaited) {
    std::optional<Kernel> kernel = wait_for(keys[i]);
    if (kernel)
      found[i] = *kernel;
    else  // the thread that was making it failed
      found[i] = get({keys[i]}, [&](size_t) { return make(i); }, &own)[0];
  }
  if (counts) {
    counts->compiled += own.compiled;
    counts->from_memory += own.from_memory;
    counts->from_disk += own.from_disk;
    counts->seconds += own.seconds;
  }
  return found;
}

/// Under the lock.
const KernelCache::Kernel* KernelCache::find(const std::string& key) {
  const Kernel* known = kernels_.find(key);
  stats_.hits += known != nullptr;
  return known;
}

void KernelCache::publish(const std::string& key, const Made& made, double seconds,
                          KernelCounts& counts) {
  std::lock_guard lock(mutex_);
  making_.erase(key);
  kernels_.add(key, made.kernel);
  if (made.from_disk) {
    ++stats_.from_disk;
    ++counts.from_disk;
  } else if (made.kernel) {
    ++stats_.compiled;
    ++counts.compiled;
    stats_.seconds += seconds;
    counts.seconds += seconds;
  }
  while (kernels_.size() > kMostKernels) kernels_.take_last();
  changed_->notify_all();
}

/// A compilation that failed: the next request tries again.
void KernelCache::withdraw(const std::string& key) {
  std::lock_guard lock(mutex_);
  making_.erase(key);
  changed_->notify_all();
}

/// Nothing when it was withdrawn, or is not kept any more.
std::optional<KernelCache::Kernel> KernelCache::wait_for(const std::string& key) {
  std::unique_lock lock(mutex_);
  wait_or_stop(*changed_, lock, [&] { return !making_.contains(key); });
  const Kernel* known = find(key);
  return known ? std::optional(*known) : std::nullopt;
}

KernelCacheStats KernelCache::stats() {
  std::lock_guard lock(mutex_);
  KernelCacheStats stats = stats_;
  stats.kept = static_cast<int64_t>(kernels_.size());
  return stats;
}

int64_t KernelCache::waiting() {
  std::lock_guard lock(mutex_);
  return static_cast<int64_t>(making_.size());
}

void KernelCache::clear() {
  std::lock_guard lock(mutex_);
  kernels_.clear();
}

}  // namespace tn::codegen
