#pragma once
// Surviving fork: a child has one thread, and a lock another thread held stays locked for ever
// unless it was taken before the fork.
namespace tn {

/// A lock that is taken before a fork and released on both sides of it. Locks are taken by rank,
/// lowest first: the order in which the library nests them.
struct ForkGuard {
  int rank;
  void* lock;
  void (*take)(void* lock);
  void (*release)(void* lock);
};
void guard_at_fork(const ForkGuard& guard);

template <class Mutex>
Mutex& guarded_at_fork(Mutex& mutex, int rank) {
  guard_at_fork({rank, &mutex, [](void* m) { static_cast<Mutex*>(m)->lock(); },
                 [](void* m) { static_cast<Mutex*>(m)->unlock(); }});
  return mutex;
}

/// Called in the child, when all guarded locks are free again: for state that named threads.
void in_child_after_fork(void (*reset)());

}  // namespace tn
