#include "base/at_fork.h"

#include <pthread.h>

#include <algorithm>
#include <mutex>
#include <vector>

namespace tn {

namespace {

/// What is added stays. Adding never waits for another thread: a thread that makes a static object
/// while another forks would leave it half-made in the child.
template <class T>
class Grown {
 public:
  void add(const T& value) {
    auto* link = new Link{value, last_.load(std::memory_order_relaxed)};
    while (!last_.compare_exchange_weak(link->before, link, std::memory_order_release)) {
    }
  }
  /// In the order in which they were added.
  std::vector<T> all() const {
    std::vector<T> found;
    for (Link* at = last_.load(std::memory_order_acquire); at; at = at->before)
      found.push_back(at->value);
    std::ranges::reverse(found);
    return found;
  }

 private:
  struct Link {
    T value;
    Link* before;
  };
  std::atomic<Link*> last_ = nullptr;
};

constinit Grown<ForkGuard> guards;
constinit Grown<void (*)()> resets;

std::mutex forks;  // one at a time
std::vector<ForkGuard>& taken() {
  static auto& only = *new std::vector<ForkGuard>;
  return only;
}

void release_taken() {
  for (auto g = taken().rbegin(); g != taken().rend(); ++g) g->release(g->lock);
}

/// A thread that holds a lock may add another one: if there are more when all are taken, they are
/// taken again.
void before() {
  forks.lock();
  for (;;) {
    taken() = guards.all();
    std::ranges::stable_sort(taken(), {}, &ForkGuard::rank);
    for (const ForkGuard& g : taken()) g.take(g.lock);
    if (guards.all().size() == taken().size()) return;
    release_taken();
  }
}

void in_parent() {
  release_taken();
  forks.unlock();
}

std::atomic<int> generation{0};

void in_child() {
  generation.fetch_add(1, std::memory_order_relaxed);
  in_parent();
  for (void (*reset)() : resets.all()) reset();
}

[[maybe_unused]] const int kInstalled = pthread_atfork(before, in_parent, in_child);

}  // namespace

int fork_generation() { return generation.load(std::memory_order_relaxed); }

void guard_at_fork(const ForkGuard& guard) { guards.add(guard); }

void in_child_after_fork(void (*reset)()) { resets.add(reset); }

}  // namespace tn
