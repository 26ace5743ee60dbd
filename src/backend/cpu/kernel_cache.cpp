#include "backend/cpu/kernel_cache.h"

#include <atomic>
#include <chrono>

#include "runtime/threads.h"

namespace tn::cpu {

KernelCache& KernelCache::shared() {
  static KernelCache* cache = new KernelCache;  // outlives kernels that run while the process ends
  return *cache;
}

std::vector<KernelCache::Kernel> KernelCache::get(const std::vector<std::string>& keys,
                                                  const std::function<Kernel(size_t)>& compile,
                                                  KernelCounts* counts) {
  std::vector<size_t> missing;
  std::atomic<double> seconds = 0;
  std::vector<Kernel> found(keys.size());
  {
    std::lock_guard lock(mutex_);
    for (size_t i = 0; i < keys.size(); ++i) {
      auto [at, is_new] = entries_.try_emplace(keys[i]);
      if (is_new) {
        missing.push_back(i);
        continue;
      }
      ++stats_.hits;
      if (!at->second.ready) continue;
      found[i] = at->second.kernel;
      recent_.splice(recent_.begin(), recent_, at->second.recent);
    }
  }
  try {
    parallel_for(static_cast<int64_t>(missing.size()), [&](int64_t k) {
      size_t i = missing[static_cast<size_t>(k)];
      auto begin = std::chrono::steady_clock::now();
      found[i] = compile(i);
      std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      publish(keys[i], found[i], took.count());
      seconds += took.count();
    });
  } catch (...) {
    for (size_t i : missing) withdraw(keys[i]);
    throw;
  }
  if (counts) {
    counts->compiled += static_cast<int64_t>(missing.size());
    counts->from_memory += static_cast<int64_t>(keys.size() - missing.size());
    counts->seconds += seconds;
  }
  std::unique_lock lock(mutex_);
  for (size_t i = 0; i < keys.size(); ++i) {
    if (found[i]) continue;
    changed_.wait(lock, [&] {
      auto at = entries_.find(keys[i]);
      return at == entries_.end() || at->second.ready;
    });
    auto at = entries_.find(keys[i]);  // gone: its compilation failed, or it has no native form
    if (at != entries_.end()) found[i] = at->second.kernel;
  }
  return found;
}

void KernelCache::publish(const std::string& key, Kernel kernel, double seconds) {
  std::lock_guard lock(mutex_);
  Entry& entry = entries_[key];
  entry.kernel = std::move(kernel);
  entry.ready = true;
  entry.recent = recent_.insert(recent_.begin(), key);
  stats_.seconds += seconds;
  ++stats_.compiled;
  while (recent_.size() > kMostKernels) {
    entries_.erase(recent_.back());
    recent_.pop_back();
  }
  changed_.notify_all();
}

/// A compilation that failed: whoever asks next tries again.
void KernelCache::withdraw(const std::string& key) {
  std::lock_guard lock(mutex_);
  auto at = entries_.find(key);
  if (at != entries_.end() && !at->second.ready) entries_.erase(at);
  changed_.notify_all();
}

KernelCacheStats KernelCache::stats() {
  std::lock_guard lock(mutex_);
  KernelCacheStats stats = stats_;
  stats.kept = static_cast<int64_t>(recent_.size());
  return stats;
}

void KernelCache::clear() {
  std::lock_guard lock(mutex_);
  for (const std::string& key : recent_) entries_.erase(key);
  recent_.clear();
}

}  // namespace tn::cpu
