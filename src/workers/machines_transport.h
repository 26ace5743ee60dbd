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
                    int64_t count, std::byte* out);

  /// The roots of this machine from the operands of its workers, one after the other.
  void fold_roots(const CollectiveCall& call, const std::vector<const void*>& operands,
                  int64_t count, std::byte* out) const;
  /// The fold of all from the roots of all machines, as elements of the call.
  void fold_rest(const CollectiveCall& call, const std::vector<const std::byte*>& roots,
                 int64_t count, std::byte* out) const;

  /// The first workers of all machines compare their calls and swap `bytes` of data each: the
  /// results are by machine. Others return at once.
  std::vector<std::vector<std::byte>> meet(const CollectiveCall& call, const void* data,
                                           int64_t bytes);
  void meet_and_arrive(const CollectiveCall& call);
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
};

/// The transport of all workers of a program that MPI started.
std::unique_ptr<Transport> open_machines(const LaunchEnvironment& launch);

}  // namespace tn::workers
