#pragma once
// Collectives of workers on several machines: through shared memory inside a machine, through MPI
// between machines.
//
// Folds keep the order of workers/rank_fold.h. Of the tree over all ranks a machine folds the
// largest subtrees whose leaves are its own, the roots; these are exchanged, and the rest of the
// tree is folded from them. So results have the bits of a program on one machine. f16 and bf16 are
// exchanged as f32 in between, and rounded once at the end.
#include "workers/mpi_link.h"
#include "workers/shared_transport.h"

namespace tn::workers {

/// The workers of a group, by machine. Machines name them by their ranks in the group.
struct Members {
  std::vector<Machine> machines;
  int own = 0;              // machine
  std::vector<int> in_mpi;  // ranks there
  int tag = 0;              // of the group's transfers; the next one is that of messages
};

class MachinesTransport final : public SharedTransport {
 public:
  /// All workers; `memory` is that of this machine.
  MachinesTransport(MpiLink& link, std::shared_ptr<WorldMemory> memory, int place, Members members);
  /// Some of them, by their places in the memory of `parent`.
  MachinesTransport(MpiLink& link, std::shared_ptr<WorldMemory> memory, int place, Members members,
                    const MachinesTransport& parent, const std::vector<int>& places);

  int rank() const override { return ranks_here()[static_cast<size_t>(rank_)]; }
  int size() const override { return static_cast<int>(members_.in_mpi.size()); }
  void send(const CollectiveCall& call) override;
  void receive(const CollectiveCall& call) override;
  std::unique_ptr<Transport> split(int color, int key) override;

 private:
  /// Where a worker of the group is.
  struct Seat {
    int machine, place;
  };
  struct Range {
    int first, last;  // ranks
  };
  struct Part {
    int64_t begin = 0, end = 0;  // elements
    int64_t count() const { return end - begin; }
    Part of(int k, int parts) const;
  };
  /// Memory that grows, and is not initialized.
  class Room {
   public:
    std::byte* of(int64_t bytes);

   private:
    std::unique_ptr<std::byte[]> made_;
    int64_t bytes_ = 0;
  };

  void find_seats();
  void find_roots(int first, int last);
  const std::vector<int>& ranks_here() const { return ranks_on(members_.own); }
  const std::vector<int>& ranks_on(int machine) const {
    return members_.machines[static_cast<size_t>(machine)].workers;
  }
  int machines() const { return static_cast<int>(members_.machines.size()); }
  /// The worker of a machine that does what another machine's worker at `place` needs.
  int counterpart(int machine, int place) const;
  int64_t roots_on(int machine) const {
    return static_cast<int64_t>(roots_[static_cast<size_t>(machine)].size());
  }

  void exchange(const CollectiveCall& call) override;
  void reduce_in_one(const CollectiveCall& call);
  void reduce_in_slices(const CollectiveCall& call);
  void gather_all(const CollectiveCall& call, int64_t bytes);
  void scatter_sums(const CollectiveCall& call, int64_t bytes);
  void exchange_all(const CollectiveCall& call, int64_t bytes);
  void broadcast_all(const CollectiveCall& call, int64_t bytes);
  void reduce_slice(const CollectiveCall& call, const std::vector<const void*>& operands,
                    int64_t count, std::byte* out, bool begins);
  void add_swap(const CollectiveCall& call, const std::vector<const void*>& operands, Part piece,
                bool begins, std::vector<Transfer>& transfers);
  void fold_own_part(const CollectiveCall& call, const std::vector<const void*>& operands,
                     Part piece, bool begins, std::byte* out);
  void add_spread(Part piece, int64_t width, std::byte* out, std::vector<Transfer>& transfers);

  /// `bytes` of the operands of this machine's workers: in slots, or where the only worker has it.
  std::vector<const void*> operands_here(const void* in, int64_t bytes);
  /// The roots of this machine from the operands of its workers, one after the other.
  void fold_roots(const CollectiveCall& call, const std::vector<const void*>& operands,
                  int64_t count, std::byte* out) const;
  /// The same of a part, in `room`, or where the operand of the only worker is.
  const std::byte* roots_of(const CollectiveCall& call, const std::vector<const void*>& operands,
                            Part part, Room& room) const;
  /// The fold of all from the roots of all machines, as elements of the call.
  void fold_rest(const CollectiveCall& call, const std::vector<const std::byte*>& roots,
                 int64_t count, std::byte* out) const;

  /// The first message of a call between two workers begins with a digest of the call, in a head
  /// that is followed by at most kFirstBytes. So it can be received whatever the other one calls.
  static constexpr int64_t kHeadBytes = 64, kFirstBytes = 32 << 10;
  Transfer sending_first(int rank, std::byte* message, int64_t bytes) const;
  Transfer receiving_first(int machine);
  /// After the first messages: calls must be the same before their data are used.
  void compare_calls();
  /// The first worker swaps first messages with those of other machines: its own has `bytes` of
  /// data behind the head in `sent_` of this machine.
  void meet(int64_t bytes);
  void meet_and_arrive();
  void transfer(const std::vector<Transfer>& transfers);
  Transfer sending(int rank, const void* data, int64_t bytes) const;
  Transfer receiving(int rank, void* data, int64_t bytes) const;

  void fail_late() override;
  std::string name_of_worker(int place) const override;
  std::string name_of_rank(int rank) const;

  MpiLink& link_;
  Members members_;
  std::vector<Seat> seats_;                // by rank
  std::vector<std::vector<Range>> roots_;  // by machine
  int lanes_ = 0;                          // workers of each machine that talk to others in sums
  int64_t most_roots_ = 0;                 // of a machine
  std::vector<Room> sent_, got_;           // by machine
};

/// The transport of all workers of a program that MPI started.
std::unique_ptr<Transport> open_machines(const LaunchEnvironment& launch);

}  // namespace tn::workers
