#pragma once
// Surviving fork: a child has one thread, and a lock another thread held stays locked
// unless it was taken before the fork.
#include <atomic>
#include <memory>

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

/// One for the life of the process, whose `mutex` is guarded.
template <class T>
T& guarded_for_process(int rank) {
  auto* made = new T;
  guarded_at_fork(made->mutex, rank);
  return *made;
}
/// Of a lock under which no other of the library is taken, and no user's code runs.
constexpr int kInnermost = 20;

/// Called in the child, when all guarded locks are free again: for state that named threads.
void in_child_after_fork(void (*reset)());

/// How many forks lie between this process and the one that loaded the library.
int fork_generation();

/// State with a mutex of its own. A forked child creates a new one: a thread of the parent may have
/// left the old one locked and half changed.
template <class T>
class PerProcess {
 public:
  PerProcess() : now_(new Made{fork_generation()}) {}
  ~PerProcess() {
    Made* made = now_.load();
    if (made->generation == fork_generation()) delete made;
  }
  PerProcess(const PerProcess&) = delete;

  T& operator*() const {
    Made* made = now_.load(std::memory_order_acquire);
    if (made->generation == fork_generation()) return made->value;
    std::unique_ptr<Made> fresh(new Made{fork_generation()});
    if (now_.compare_exchange_strong(made, fresh.get())) return fresh.release()->value;
    return made->value;  // another thread was first
  }
  T* operator->() const { return &**this; }

 private:
  struct Made {
    int generation;
    T value = {};
  };
  mutable std::atomic<Made*> now_;
};

}  // namespace tn
