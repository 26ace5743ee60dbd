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

/// Where the workers of a group wait for each other. Each has a flag of its own, so that arrivals
/// do not compete. A stop marks all flags, and no worker arrives at a flag that is marked. So a
/// round is either complete for all workers or stopped for all.
class Gate {
 public:
  void resize(int size) { flags_ = std::vector<Flag>(static_cast<size_t>(size)); }
  /// Counts this worker and returns what to wait for. Throws Stopped if `stop` came first.
  uint32_t arrive(int rank);
  using Look = FunctionRef<void(uint32_t arrival)>;
  /// Returns when all have arrived. If `stop` came before the last of them, all throw Stopped. A
  /// worker that sleeps calls `look` at intervals. What it throws stops all, unless all have
  /// arrived by then: then it is returned, to be thrown when the work of the round is done.
  std::exception_ptr wait(uint32_t arrival, bool spins, Look look);
  void stop();
  void reset();
  /// Whether workers that have arrived wait for others, who may still come.
  bool is_open(uint32_t arrival) const { return fate(arrival) == Fate::open; }

 private:
  enum class Fate { open, complete, stopped };
  struct alignas(64) Flag {
    std::atomic<uint32_t> state = 0;  // twice the number of arrivals, and the mark
    std::atomic<uint32_t> sleepers = 0;
    bool has_arrived(uint32_t arrival) const {
      return static_cast<int32_t>((state.load() & ~kStopped) - arrival) >= 0;
    }
    void wake_all();
  };
  Fate fate(uint32_t arrival) const;
  void sleep_until(Flag& flag, uint32_t arrival, Look look);

  static constexpr uint32_t kStopped = 1, kArrival = 2;
  std::vector<Flag> flags_;
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
  /// `work` fails or not. Throws NotMet where calls differ, or where not all workers come and none
  /// can go on or time is up.
  void complete(int rank, uint64_t round, FunctionRef<void()> work);
  void together(int rank, const CollectiveCall& call, FunctionRef<void()> work) {
    complete(rank, begin(rank, call), work);
  }

  const CollectiveCall& call_of(uint64_t round, int rank) const { return seat(round, rank).call; }
  /// What is folded, one piece or several.
  std::span<const CallPiece> pieces_of(uint64_t round, int rank) const {
    return seat(round, rank).pieces;
  }
  /// What the calls of all have at `offset` of their operands.
  std::vector<const void*> operands(uint64_t round, int64_t offset) const;

 private:
  static constexpr size_t kRounds = Transport::kMostStarted;

  /// What a worker shows. Others read the first cache line alone, unless digests differ.
  struct alignas(64) Seat {
    uint64_t digest = 0;
    std::span<const CallPiece> pieces;
    CallPiece piece{};  // of a call that has one
    CollectiveCall call;
    std::vector<CallPiece> several;
  };
  struct Round {
    Gate begin, end;
    std::vector<Seat> seats;  // by rank
  };
  /// Of one worker, for itself.
  struct alignas(64) Progress {
    uint64_t begun = 0, completed = 0;  // rounds
    uint32_t begin[kRounds] = {};       // its arrivals
  };

  /// Rounds that are completed in the order of their beginnings.
  struct Ring {
    Round rounds[kRounds];
    std::vector<Progress> progress;  // by rank
  };

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

  void check_alike(uint64_t round) const;
  int number_of(int rank) const { return members_.first + rank * members_.step; }
  /// Arrives at the end of a round, and waits until no other worker needs what this one has shown.
  /// A round that all have begun is never left: an interrupt stops the other workers, and is
  /// returned.
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
  ThreadTransport(ThreadGroup& group, int rank)
      : group_(group),
        rank_(rank),
        in_(static_cast<size_t>(group.size())),
        out_(static_cast<size_t>(group.size())) {}
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
  void reduce(uint64_t round);

  ThreadGroup& group_;
  int rank_;
  std::vector<const void*> in_;  // of all workers, while this one folds
  std::vector<void*> out_;
};

}  // namespace tn::workers
