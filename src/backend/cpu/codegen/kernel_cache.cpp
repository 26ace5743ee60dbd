#include "backend/cpu/codegen/kernel_cache.h"

#include <chrono>

#include "base/at_fork.h"
#include "base/interrupt.h"
#include "runtime/threads.h"

namespace tn::cpu {

KernelCache& KernelCache::shared() {
  static KernelCache& only = *[] {
    auto* made = new KernelCache;  // outlives kernels that run while the process ends
    guarded_at_fork(made->mutex_, 11);
    return made;
  }();
  // A child of fork has not the threads that were compiling.
  static const bool registered = (in_child_after_fork([] { only.forget_unready(); }), true);
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
      auto [at, is_new] = entries_.try_emplace(keys[i]);
      if (is_new)
        missing.push_back(i);
      else if (at->second.ready)
        found[i] = use(*at);
      else
        awaited.push_back(i);
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
    else  // whoever was making it failed
      found[i] = get(
          {keys[i]}, [&](size_t) { return make(i); }, &own)[0];
  }
  if (counts) {
    counts->compiled += own.compiled;
    counts->from_memory += own.from_memory;
    counts->from_disk += own.from_disk;
    counts->seconds += own.seconds;
  }
  return found;
}

/// Under the lock, of an entry that is ready.
KernelCache::Kernel KernelCache::use(Entries::value_type& entry) {
  ++stats_.hits;
  recent_.splice(recent_.begin(), recent_, entry.second.recent);
  return entry.second.kernel;
}

void KernelCache::publish(const std::string& key, const Made& made, double seconds,
                          KernelCounts& counts) {
  std::lock_guard lock(mutex_);
  auto at = entries_.try_emplace(key).first;
  at->second = {made.kernel, true, recent_.insert(recent_.begin(), &at->first)};
  if (made.from_disk) {
    ++stats_.from_disk;
    ++counts.from_disk;
  } else if (made.kernel) {
    ++stats_.compiled;
    ++counts.compiled;
    stats_.seconds += seconds;
    counts.seconds += seconds;
  }
  while (recent_.size() > kMostKernels) {
    entries_.erase(*recent_.back());
    recent_.pop_back();
  }
  changed_->notify_all();
}

/// A compilation that failed: whoever asks next tries again.
void KernelCache::withdraw(const std::string& key) {
  std::lock_guard lock(mutex_);
  auto at = entries_.find(key);
  if (at != entries_.end() && !at->second.ready) entries_.erase(at);
  changed_->notify_all();
}

/// Nothing when it was withdrawn, or is not kept any more.
std::optional<KernelCache::Kernel> KernelCache::wait_for(const std::string& key) {
  std::unique_lock lock(mutex_);
  auto at = entries_.end();
  auto decided = [&] {
    at = entries_.find(key);
    return at == entries_.end() || at->second.ready;
  };
  wait_or_stop(*changed_, lock, decided);
  if (at == entries_.end()) return std::nullopt;
  return use(*at);
}

void KernelCache::forget_unready() {
  std::lock_guard lock(mutex_);
  std::erase_if(entries_, [](const auto& entry) { return !entry.second.ready; });
}

KernelCacheStats KernelCache::stats() {
  std::lock_guard lock(mutex_);
  KernelCacheStats stats = stats_;
  stats.kept = static_cast<int64_t>(recent_.size());
  return stats;
}

int64_t KernelCache::waiting() {
  std::lock_guard lock(mutex_);
  return static_cast<int64_t>(entries_.size() - recent_.size());
}

void KernelCache::clear() {
  std::lock_guard lock(mutex_);
  std::erase_if(entries_, [](const auto& entry) { return entry.second.ready; });
  recent_.clear();
}

}  // namespace tn::cpu
