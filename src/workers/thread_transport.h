#pragma once
// Collectives of workers that are threads of one process: they read each other's memory.
#include <atomic>
#include <memory>
#include <vector>

#include "base/function_ref.h"
#include "runtime/transport.h"

namespace tn::workers {

/// Where the workers of a group wait for each other. Arrivals, rounds and the stop are one word: a
/// round is either complete for all workers or stopped for all.
class Gate {
 public:
  /// Returns when `size` workers have called it. If `stop` came first, all of them throw Stopped.
  void pass(int size);
  void stop();
  void reset() { state_ = 0; }

 private:
  static constexpr uint32_t kArrived = (1u << 15) - 1, kStopped = 1u << 15, kRound = 1u << 16;
  std::atomic<uint32_t> state_ = 0;
};

/// Where the workers of a group meet.
class ThreadGroup {
 public:
  explicit ThreadGroup(int size);
  int size() const { return static_cast<int>(calls_.size()); }

  /// Makes every worker that waits for a call to begin, or makes a later one, throw Stopped. A call
  /// that has begun is completed by all: they read each other's memory.
  void stop() { begin_.stop(); }
  /// For the next run, when no worker is here.
  void reset();

  /// Shows `call` to all workers, does `work` when the calls of all are known, and returns when all
  /// have done theirs, whether `work` fails or not.
  void together(int rank, const CollectiveCall& call, FunctionRef<void()> work);
  const CollectiveCall& call_of(int rank) const { return *calls_[static_cast<size_t>(rank)]; }
  /// What the calls of all have at `offset` of their operands.
  std::vector<const void*> operands(int64_t offset) const;

 private:
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
