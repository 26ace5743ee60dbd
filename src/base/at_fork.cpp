#include "base/at_fork.h"

#include <pthread.h>

#include <algorithm>
#include <mutex>
#include <vector>

namespace tn {

namespace {

struct Registry {
  std::mutex forks;  // one at a time
  std::mutex mutex;
  std::vector<ForkGuard> guards;  // by rank
  std::vector<void (*)()> resets;
};

Registry& registry() {
  static auto& only = *new Registry;
  return only;
}

void release(const std::vector<ForkGuard>& guards) {
  for (auto g = guards.rbegin(); g != guards.rend(); ++g) g->release(g->lock);
}

/// A thread that holds a lock may register another one: the registry is locked after all others,
/// and if it has grown since they were listed, they are taken again.
void before() {
  registry().forks.lock();
  std::unique_lock lock(registry().mutex);
  for (;;) {
    std::vector<ForkGuard> guards = registry().guards;
    lock.unlock();
    for (const ForkGuard& g : guards) g.take(g.lock);
    lock.lock();
    if (guards.size() == registry().guards.size()) break;
    lock.unlock();
    release(guards);
    lock.lock();
  }
  lock.release();
}

void release_all() {
  release(registry().guards);
  registry().mutex.unlock();
  registry().forks.unlock();
}

std::atomic<int> generation{0};

void in_child() {
  generation.fetch_add(1, std::memory_order_relaxed);
  release_all();
  for (void (*reset)() : registry().resets) reset();
}

void install() {
  static const int installed = pthread_atfork(before, release_all, in_child);
  (void)installed;
}

}  // namespace

int fork_generation() { return generation.load(std::memory_order_relaxed); }

void guard_at_fork(const ForkGuard& guard) {
  install();
  std::lock_guard lock(registry().mutex);
  auto& guards = registry().guards;
  auto after = [](const ForkGuard& a, const ForkGuard& b) { return a.rank < b.rank; };
  guards.insert(std::upper_bound(guards.begin(), guards.end(), guard, after), guard);
}

void in_child_after_fork(void (*reset)()) {
  install();
  std::lock_guard lock(registry().mutex);
  registry().resets.push_back(reset);
}

}  // namespace tn
