#pragma once
// Collectives of workers that are threads of one process: they read each other's memory.
#include <atomic>
#include <exception>
#include <memory>
#include <vector>

#include "base/function_ref.h"
#include "runtime/transport.h"
#include "workers/thread_waits.h"

namespace tn::workers {

/// Where the workers of a group wait for each other. Arrivals, rounds and the stop are one word: a
/// round is either complete for all workers or stopped for all.
class Gate {
 public:
  using Look = FunctionRef<void(uint32_t arrival)>;
  /// Counts an arrival, and returns what `wait` takes. Throws Stopped if `stop` came first.
  uint32_t arrive(int size);
  /// Returns when all workers of the round have arrived. If `stop` came first, all of them throw
  /// Stopped. A worker that sleeps calls `look` at intervals. What it throws stops all, unless the
  /// round is complete by then: then it is returned, to be thrown when the round's work is done.
  std::exception_ptr wait(uint32_t arrival, bool spins, Look look);
  void stop();
  void reset() { state_ = 0; }
  /// The number of complete rounds.
  uint32_t round() const { return state_.load() / kRound; }

 private:
  void wake_all();

  static constexpr uint32_t kArrived = (1u << 15) - 1, kStopped = 1u << 15, kRound = 1u << 16;
  std::atomic<uint32_t> state_ = 0, sleepers_ = 0;
};

/// Where the workers of a group meet.
class ThreadGroup {
 public:
  explicit ThreadGroup(int size);
  /// Some workers of a mesh, whose waits are entered in `waits`.
  ThreadGroup(GroupMembers members, ThreadWaits& waits);
  int size() const { return static_cast<int>(calls_.size()); }

  /// Makes every worker that waits for a call to begin, or makes a later one, throw Stopped. A call
  /// that has begun is completed by all: they read each other's memory.
  void stop() { begin_.stop(); }
  /// For the next run, when no worker is here.
  void reset();

  /// Shows `call` to all workers, does `work` when the calls of all are known, and returns when all
  /// have done theirs, whether `work` fails or not. Throws NotMet where calls differ, or where not
  /// all workers come and none can go on or time is up.
  void together(int rank, const CollectiveCall& call, FunctionRef<void()> work);
  const CollectiveCall& call_of(int rank) const { return *calls_[static_cast<size_t>(rank)]; }
  /// What the calls of all have at `offset` of their operands.
  std::vector<const void*> operands(int64_t offset) const;

 private:
  void check_alike() const;
  int number_of(int rank) const { return members_.first + rank * members_.step; }

  GroupMembers members_;
  ThreadWaits own_waits_;  // of a group without a mesh
  ThreadWaits& waits_;
  std::vector<const CollectiveCall*> calls_;
  Gate begin_, end_;
};

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(ThreadGroup& group, int rank) : group_(group), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return group_.size(); }
  /// A line of a host language takes its lock, which a thread that waits for this one may hold.
  bool shows_places() const override { return false; }
  void run(const CollectiveCall& call) override;
  void send(const CollectiveCall& call) override;
  void receive(const CollectiveCall& call) override;
  std::unique_ptr<Transport> split(int color, int key) override;

 private:
  void reduce(const CollectiveCall& call);

  ThreadGroup& group_;
  int rank_;
};

}  // namespace tn::workers
