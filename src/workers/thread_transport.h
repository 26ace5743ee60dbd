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
  /// Counts this worker, the number of `size` of them, and returns what to wait for. Throws Stopped
  /// if `stop` came first.
  uint32_t arrive(int size);
  using Look = FunctionRef<void(uint32_t arrival)>;
  /// Returns when all have arrived. If `stop` came before the last of them, all throw Stopped. A
  /// worker that sleeps calls `look` at intervals. What it throws stops all, unless all have
  /// arrived by then: then it is returned, to be thrown when the work of the round is done.
  std::exception_ptr wait(uint32_t arrival, bool spins, Look look);
  void stop();
  void reset() { state_ = 0; }
  /// The number of complete rounds.
  uint32_t round() const { return state_.load() / kRound; }
  bool is_stopped() const { return state_.load() & kStopped; }

 private:
  void wake_all();

  static constexpr uint32_t kArrived = (1u << 15) - 1, kStopped = 1u << 15, kRound = 1u << 16;
  alignas(64) std::atomic<uint32_t> state_ = 0, sleepers_ = 0;
};

/// Where the workers of a group meet. A call is a round: a worker begins it without waiting for
/// the others, and completes it when all have begun it. Rounds that follow each other use different
/// memory, so several are under way at once.
class ThreadGroup {
 public:
  /// `all`: workers of the mesh.
  explicit ThreadGroup(int size, int all = 0);
  /// Some workers of a mesh, whose waits are entered in `waits`.
  ThreadGroup(const GroupMembers& members, int all, ThreadWaits& waits);
  int size() const { return size_; }

  /// Makes every worker that waits for a round to begin, or begins a later one, throw Stopped. A
  /// round that all have begun is completed by all: they read each other's memory.
  void stop();
  /// For the next run, when no worker is here.
  void reset();

  /// Shows `call` to all workers. The result names the round. Calls that are started before others
  /// and completed after them have rounds of their own, so that both complete in order.
  uint64_t begin(int rank, const CollectiveCall& call, bool is_started = false);
  /// Does `work` when the calls of all are known, and returns when all have done theirs, whether
  /// `work` fails or not. If the operands were copied, it returns when its own work is done.
  /// Throws NotMet where calls differ, or where not all workers come and none can go on or time is
  /// up.
  void complete(int rank, uint64_t round, FunctionRef<void()> work);
  void together(int rank, const CollectiveCall& call, FunctionRef<void()> work) {
    complete(rank, begin(rank, call), work);
  }

  const CollectiveCall& call_of(uint64_t round, int rank) const { return seat(round, rank).call; }
  /// What is folded, one piece or several.
  std::span<const CallPiece> pieces_of(uint64_t round, int rank) const {
    return seat(round, rank).pieces;
  }
  /// Whether the operands are small sums, which were copied to `copy_of`.
  bool is_copied(uint64_t round) const { return is_small(call_of(round, 0)); }
  const std::byte* copy_of(uint64_t round, int rank) const { return room(round, rank); }
  /// What the calls of all have at `offset` of their operands.
  std::vector<const void*> operands(uint64_t round, int64_t offset) const;

 private:
  static constexpr size_t kRounds = 2 * Transport::kMostStarted;
  static constexpr int64_t kSmallBytes = 32 << 10;

  struct Seat {
    CollectiveCall call;
    std::vector<CallPiece> pieces;
  };
  struct Round {
    Gate begin, end;
    std::vector<Seat> seats;  // by rank
  };
  /// Of one worker, for itself.
  struct alignas(64) Progress {
    uint64_t begun = 0, completed = 0;  // rounds
    uint32_t begin[kRounds] = {}, end[kRounds] = {};
  };

  /// Rounds that are completed in the order of their beginnings.
  struct Ring {
    Round rounds[kRounds];
    std::vector<Progress> progress;     // by rank
    std::unique_ptr<std::byte[]> room;  // for small operands
  };

  static bool is_small(const CollectiveCall& call);
  // A round's name is its number in a ring, and the ring.
  static uint64_t name_of(uint64_t number, bool is_started) { return number * 2 + is_started; }
  static uint64_t number_in_ring(uint64_t round) { return round / 2; }
  static size_t place_of(uint64_t round) { return number_in_ring(round) % kRounds; }
  Ring& ring(uint64_t round) { return rings_[round % 2]; }
  const Ring& ring(uint64_t round) const { return rings_[round % 2]; }
  Progress& progress(uint64_t round, int rank) {
    return ring(round).progress[static_cast<size_t>(rank)];
  }
  Round& round(uint64_t name) { return ring(name).rounds[place_of(name)]; }
  const Seat& seat(uint64_t name, int rank) const {
    return ring(name).rounds[place_of(name)].seats[static_cast<size_t>(rank)];
  }
  std::byte* room(uint64_t name, int rank) const {
    auto place = static_cast<int64_t>(place_of(name)) * size_ + rank;
    return ring(name).room.get() + place * kSmallBytes;
  }

  void check_alike(uint64_t round) const;
  int number_of(int rank) const { return members_.first + rank * members_.step; }
  /// Waits until no other worker needs what this one has shown. A round that all have begun is
  /// never left: an interrupt stops the other workers, and is returned.
  std::exception_ptr wait_for_end(int rank, uint64_t name);

  int size_;
  bool spins_;  // every worker has a core
  GroupMembers members_;
  ThreadWaits own_waits_;  // of a group without a mesh
  ThreadWaits& waits_;
  Ring rings_[2];  // of calls, and of calls that are started
};

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(ThreadGroup& group, int rank) : group_(group), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return group_.size(); }
  /// A line of a host language takes its lock, which a thread that waits for this one may hold.
  bool shows_places() const override { return false; }
  void run(const CollectiveCall& call) override;
  uint64_t start(const CollectiveCall& call) override;
  void complete(uint64_t round) override;
  void abandon(uint64_t round) override;
  void stop() override { group_.stop(); }
  void send(const CollectiveCall& call) override;
  void receive(const CollectiveCall& call) override;
  std::unique_ptr<Transport> split(int color, int key) override;

 private:
  void work(uint64_t round);
  void reduce_copies(uint64_t round);
  void reduce_part(uint64_t round);

  ThreadGroup& group_;
  int rank_;
};

}  // namespace tn::workers
