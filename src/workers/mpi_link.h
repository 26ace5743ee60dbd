#pragma once
// The connection of a process to the other processes of an MPI program. A thread that waits for its
// transfers drives MPI itself, one thread at a time. Whoever drives also watches the other workers:
// every second a machine sends a sign of life to the others, and workers of one machine watch each
// other's processes. A thread in the background does so while nobody waits.
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "workers/launch_environment.h"
#include "workers/mpi_library.h"
#include "workers/world_memory.h"

namespace tn::workers {

struct Transfer {
  bool sends;
  int peer;  // a rank of MPI
  int tag;   // above 0; messages of one tag between two processes keep their order
  void* data;
  int64_t bytes;
};

/// The workers of one machine, by their ranks of MPI.
struct Machine {
  std::string name;
  std::vector<int> workers;
};

class MpiLink {
 public:
  /// Loads the library and initializes MPI. Fails if it does not see the workers that the launcher
  /// started.
  static MpiLink& open(const LaunchEnvironment& launch);

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// Returns when all transfers are done. `check` is called now and then, without locks; it throws
  /// to give up.
  void run(std::span<const Transfer> transfers, FunctionRef<void()> check);

  /// From here on failures are noticed, and reported in `memory`, which belongs to machine `own`.
  void watch(std::shared_ptr<WorldMemory> memory, std::vector<Machine> machines, int own);
  /// Whether a worker has ended without an error.
  bool has_left(int worker) const { return left_[static_cast<size_t>(worker)].load(); }
  /// What the other machines last said of their workers.
  std::string last_signs();
  /// "worker 3 on host b"
  std::string name_of(int worker) const;

 private:
  struct Job;
  struct Note {
    int32_t from;
    uint8_t kind;
    char text[1016];
  };
  struct NoteSent {
    Note note;
    int to = 0;
    MpiLibrary::Handle request = 0;
  };
  using Clock = std::chrono::steady_clock;

  MpiLink() = default;
  void start(const LaunchEnvironment& launch);
  void stay();
  enum State : uint32_t { kStarts, kIsReady, kHasFailed, kLeaves, kHasLeft };
  void enter(State state);
  void initialize();
  bool may_leave() const;
  void finish();
  void wait_or_drive(const Job& job);
  bool try_to_drive(const Job& own);
  void announce();
  void move_jobs();
  bool advance(Job& job);
  void begin(Job& job);
  void test(Job& job, size_t transfer);
  void drop(Job& job);
  void give_up();
  void attend(Clock::time_point now);
  void receive_notes();
  void read(const Note& note);
  void send(uint8_t kind, const std::string& text, const std::vector<int>& to);
  void reap_notes();
  void look_at_neighbours(Clock::time_point now);
  void look_at_machines(Clock::time_point now);
  std::vector<int> contacts() const;
  void report_failure();
  void leave();
  bool have_all_left() const;
  int own_place() const;

  LaunchEnvironment launch_;
  std::unique_ptr<MpiLibrary> mpi_;
  MpiLibrary::Handle comm_ = 0;
  int rank_ = 0, size_ = 0, process_ = 0;
  bool may_spin_ = false;
  std::atomic<uint32_t> state_ = kStarts;  // of MPI; kLeaves: in MPI_Finalize
  std::exception_ptr error_;
  std::atomic<bool> is_leaving_ = false;
  std::atomic<uint32_t> leaving_ = 0;  // wakes the thread in the background

  std::mutex mutex_;  // of the next two; the inner one of both locks
  std::vector<Job*> posted_;
  std::vector<std::string> signs_;  // by machine
  std::atomic<bool> has_posted_ = false;

  std::shared_ptr<WorldMemory> memory_;  // null: not watching yet
  std::atomic<bool> is_watching_ = false;
  std::vector<Machine> machines_;
  int own_ = 0;
  std::vector<int> machine_of_;  // by worker
  std::unique_ptr<std::atomic<bool>[]> left_made_;
  std::span<std::atomic<bool>> left_;

  // Who holds it drives: calls MPI and uses what follows.
  std::mutex driving_;
  std::atomic<uint32_t> changes_ = 0;  // a job has ended, or nobody drives any more
  std::atomic<int> sleepers_ = 0;      // that wait for `changes_`
  std::vector<Job*> jobs_;
  std::unique_ptr<NoteSent> expected_;
  std::vector<std::unique_ptr<NoteSent>> sent_;
  bool has_reported_ = false, has_said_goodbye_ = false;
  bool is_broken_ = false;  // MPI is not called any more: it was left, or transfers are open in
                            // memory that is gone
  Clock::time_point attended_ = {}, last_look_ = {}, last_beat_ = {};
  std::vector<Clock::time_point> heard_;  // by machine
  struct Neighbour {
    int file = -1;  // a pidfd
    uint32_t beats = 0;
    Clock::time_point moved = {};
  };
  std::vector<Neighbour> neighbours_;
};

}  // namespace tn::workers
