#pragma once
// Collectives of the workers of one machine, through shared memory.
//
// A collective is a number of phases. In a phase every worker writes into its own slot, arrives,
// waits for all others, and reads their slots. Slots alternate, so that one wait per phase is
// enough: who writes a slot again has passed a later phase, which the slot's readers have reached.
#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

#include "base/at_fork.h"
#include "base/function_ref.h"
#include "runtime/transport.h"
#include "workers/world_memory.h"

namespace tn::workers {

/// How long a worker waits for others that make no progress.
std::chrono::steady_clock::duration collective_timeout();

/// While one lives, this process waits for others as long as they run: one of them writes a file.
class WithoutTimeout {
 public:
  WithoutTimeout();
  ~WithoutTimeout();
  WithoutTimeout(const WithoutTimeout&) = delete;
};

class SharedTransport : public Transport {
 public:
  /// A worker of the world.
  SharedTransport(std::shared_ptr<WorldMemory> memory, int rank);
  /// Some workers of `parent`, by their ranks there.
  SharedTransport(std::shared_ptr<WorldMemory> memory, int rank, const SharedTransport& parent,
                  const std::vector<int>& members);

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void run(const CollectiveCall& call) override;
  void send(const CollectiveCall& call) override { send_to(call.peer, call); }
  void receive(const CollectiveCall& call) override { receive_from(call.peer, call); }
  std::unique_ptr<Transport> split(int color, int key) override;

 protected:
  /// The data of a call that has been published.
  virtual void exchange(const CollectiveCall& call);
  /// Does the work of a message while others can see it.
  void with_message(const CollectiveCall& call, FunctionRef<void()> work);
  void reduce_small(const CollectiveCall& call, int64_t bytes);
  void reduce_large(const CollectiveCall& call, int64_t bytes);
  void take_folded(const CollectiveCall& call, int64_t piece, int64_t bytes, bool streams);
  void gather(const CollectiveCall& call, int64_t bytes);
  void broadcast(const CollectiveCall& call, int64_t bytes);
  void scatter(const CollectiveCall& call, int64_t bytes);
  /// To and from another worker of this machine.
  void send_to(int peer, const CollectiveCall& call);
  void receive_from(int peer, const CollectiveCall& call);
  void pass(const CollectiveCall& call, int peer, Channel& channel, bool sends,
            FunctionRef<void(std::byte* room, int64_t at, size_t bytes)> move);

  std::unique_lock<std::mutex> begin_call();
  void publish(const CollectiveCall& call);
  PublishedCall published(const CollectiveCall& call, uint64_t number) const;
  void check_others();
  std::string line_given_to(int other) const;
  /// `rank_here`: of the other in this shared memory, or -1.
  void fail_unless_alike(const PublishedCall& theirs, bool is_first, const std::string& other,
                         int rank_here);
  const PublishedCall& mine() const { return record().calls[number_ % 2]; }
  WorkerRecord& record() const { return memory_->record(rank_); }
  WorkerRecord& record_in_world() const {
    return world_->record(in_world_[static_cast<size_t>(rank_)]);
  }
  void show_in_world(const PublishedCall& call, uint32_t busy);
  void set_idle();

  /// Of the phase that comes next, or of one that is so many `before` it.
  std::byte* slot_of(int rank, int before = 0) {
    return memory_->slot(rank, static_cast<int>((phase_ + static_cast<uint32_t>(before)) % 2));
  }
  std::byte* my_slot() { return slot_of(rank_); }
  std::vector<const void*> slots(int before = 0);
  void arrive_and_wait();
  /// Waits for a word that another worker changes: spins for a moment, then sleeps. Throws when a
  /// worker failed or time is up.
  void wait(int other, std::atomic<uint32_t>& word, std::atomic<uint32_t>& sleepers,
            FunctionRef<bool(uint32_t)> reached);
  [[noreturn]] void fail_different_message(const CollectiveCall& call, const DataKind& sent,
                                           const std::string& peer);
  virtual void fail_late();
  std::string late_text() const;
  [[noreturn]] void fail_with_others();
  /// What all workers call the worker of this machine.
  virtual std::string name_of_worker(int rank) const;

  void fail_all(std::string_view reason) const { world_->fail_all(reason); }

  std::mutex mutex_;  // one call at a time
  const int generation_ = fork_generation();
  std::shared_ptr<WorldMemory> memory_;
  std::shared_ptr<WorldMemory> world_;  // in which workers end and errors are reported
  std::vector<int> in_world_;           // ranks there
  int rank_, size_;
  bool may_spin_ = false;    // every worker has a core
  bool is_checked_ = false;  // the call against those of the others
  uint64_t number_ = 0;      // of calls
  uint64_t messages_ = 0;
  std::span<const Origin> given_;  // of the current call
  uint32_t phase_ = 0;
};

}  // namespace tn::workers
