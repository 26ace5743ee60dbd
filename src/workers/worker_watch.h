#pragma once
// What workers did: counters for `tenon top`, and events of collectives.
#include <array>
#include <atomic>

#include "base/events.h"
#include "base/function_ref.h"
#include "runtime/transport.h"

namespace tn::workers {

/// Counters of one worker. Times are nanoseconds; communicating is a part of running, and waiting
/// for others a part of communicating.
struct WorkerTotals {
  std::atomic<int> number{-1};  // -1: it has done nothing
  std::atomic<uint64_t> runs{0}, running{0}, collectives{0}, bytes{0}, communicating{0}, waiting{0};
};

inline constexpr size_t kCountedWorkers = 256;
/// Counters of this process's workers, by their number modulo the length.
std::array<WorkerTotals, kCountedWorkers>& worker_totals();
/// The counters of a worker.
WorkerTotals& totals_of(int worker);

/// Whether the user has requested counters.
extern constinit std::atomic<bool> workers_are_counted;
/// Whether counters are kept: requested by the user or needed by a watcher.
inline bool workers_are_watched() {
  return workers_are_counted.load(std::memory_order_relaxed) || has_watcher(EventKind::collective);
}

/// Time in which this thread waits for other workers, where that is watched.
class WaitScope {
 public:
  WaitScope() : began_(workers_are_watched() ? event_time() : 0) {}
  ~WaitScope() {
    if (began_) waited += event_time() - began_;
  }
  WaitScope(const WaitScope&) = delete;
  static inline constinit thread_local uint64_t waited = 0;

 private:
  uint64_t began_;
};
/// Excludes work inside a WaitScope from the waiting time.
class WorkScope {
 public:
  WorkScope() : began_(workers_are_watched() ? event_time() : 0) {}
  ~WorkScope() {
    if (began_) WaitScope::waited -= event_time() - began_;
  }
  WorkScope(const WorkScope&) = delete;

 private:
  uint64_t began_;
};

/// Does the work of a collective, counts it and reports it to watchers.
void watched(std::string_view group, int size, const CollectiveCall& call,
             FunctionRef<void()> work);

}  // namespace tn::workers
