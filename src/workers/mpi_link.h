#pragma once
// The connection of a process to the other processes of an MPI program. One thread makes all calls
// of MPI. It moves the data of jobs, and it watches the other workers: every second a machine sends
// a sign of life to the others, and workers of one machine watch each other's processes.
#include <atomic>
#include <chrono>
#include <deque>
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

  /// Returns when all transfers are done. `check` is called now and then; it throws to give up.
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
  void poll();
  void initialize();
  bool move_jobs();
  void begin(Job& job);
  bool test(Job& job, size_t transfer);
  void drop(Job& job);
  void give_up();
  void attend();
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
  std::atomic<uint32_t> state_ = 0;  // 1: MPI is initialized, 2: that failed, 3: the thread ended
  std::exception_ptr error_;

  std::mutex mutex_;  // of what follows
  std::deque<std::shared_ptr<Job>> posted_;
  std::vector<std::string> signs_;  // by machine
  std::atomic<uint32_t> wanted_ = 0;
  std::atomic<bool> is_leaving_ = false;

  std::shared_ptr<WorldMemory> memory_;  // null: not watching yet
  std::atomic<bool> is_watching_ = false;
  std::vector<Machine> machines_;
  int own_ = 0;
  std::vector<int> machine_of_;  // by worker
  std::unique_ptr<std::atomic<bool>[]> left_made_;
  std::span<std::atomic<bool>> left_;

  // Of the thread alone.
  std::vector<std::shared_ptr<Job>> jobs_;
  std::unique_ptr<NoteSent> expected_;
  std::vector<std::unique_ptr<NoteSent>> sent_;
  bool has_reported_ = false, has_said_goodbye_ = false;
  bool is_broken_ = false;  // transfers are open in memory that is gone: MPI is not called any more
  Clock::time_point last_look_ = {}, last_beat_ = {};
  std::vector<Clock::time_point> heard_;  // by machine
  struct Neighbour {
    int file = -1;  // a pidfd
    uint32_t beats = 0;
    Clock::time_point moved = {};
  };
  std::vector<Neighbour> neighbours_;
};

}  // namespace tn::workers
