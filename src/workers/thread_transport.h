#pragma once
// Collectives of workers that are threads of one process: they read each other's memory.
#include <atomic>
#include <memory>
#include <vector>

#include "base/function_ref.h"
#include "runtime/transport.h"

namespace tn::workers {

/// Where the workers of a group meet.
class ThreadGroup {
 public:
  explicit ThreadGroup(int size);
  int size() const { return static_cast<int>(calls_.size()); }

  /// Makes every worker that waits here, or comes here, throw Stopped.
  void stop();
  /// For the next run, when no worker is here.
  void reset();

  /// Shows `call` to all workers, does `work` when the calls of all are known, and returns when all
  /// have done theirs.
  void together(int rank, const CollectiveCall& call, FunctionRef<void()> work);
  const CollectiveCall& call_of(int rank) const { return *calls_[static_cast<size_t>(rank)]; }
  /// What the calls of all have at `offset` of their operands.
  std::vector<const void*> operands(int64_t offset) const;

 private:
  void meet();

  std::vector<const CollectiveCall*> calls_;
  std::atomic<uint32_t> arrived_ = 0, round_ = 0;
  std::atomic<bool> stopped_ = false;
};

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(ThreadGroup& group, int rank) : group_(group), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return group_.size(); }
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
