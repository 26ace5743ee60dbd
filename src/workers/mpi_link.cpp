#include "workers/mpi_link.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "base/error.h"
#include "tenon/distributed.h"

namespace tn::workers {
namespace {

constexpr auto kPollSpin = std::chrono::microseconds(30);
constexpr int kIdleMilliseconds = 5;  // between looks for notes while there is no work
constexpr int kCheckMilliseconds = 50;
constexpr int64_t kMostBytes = int64_t{1} << 30;  // of one message

}  // namespace

struct MpiLink::Job {
  std::vector<Transfer> transfers;
  std::vector<MpiLibrary::Handle> requests = {};
  std::vector<bool> is_done = {};
  size_t left = 0;
  std::string error = {};
  std::atomic<uint32_t> state = 0;  // 1: done, 2: to be dropped, 3: dropped
};

MpiLink& MpiLink::open(const LaunchEnvironment& launch) {
  static MpiLink* const made = [&] {
    auto* link = new MpiLink;  // for the life of the process
    link->start(launch);
    return link;
  }();
  return *made;
}

void MpiLink::start(const LaunchEnvironment& launch) {
  launch_ = launch;
  mpi_ = MpiLibrary::load(launch.libraries);
  process_ = getpid();
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  // A thread that computes and one that polls, for every worker that may share these cores.
  const char* local = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  if (!local) local = std::getenv("MPI_LOCALNRANKS");
  int sharing = std::max(1, local ? std::atoi(local) : launch.size);
  may_spin_ = CPU_COUNT(&allowed) >= 2 * sharing;
  std::thread([this] { poll(); }).detach();
  while (state_.load(std::memory_order_acquire) == 0) sleep_until_change(state_, 0, 100);
  if (error_) std::rethrow_exception(error_);
  static MpiLink* leaving = nullptr;
  leaving = this;
  std::atexit([] { leaving->leave(); });
}

/// On the thread that makes all calls.
void MpiLink::initialize() {
  int flag = 0, provided = 0;
  mpi_->initialized(&flag);
  if (flag)
    fail(Hint{"call tn.distributed.init() before other libraries that use MPI"},
         "workers: MPI was initialized before, on another thread");
  if (int code = mpi_->init_thread(nullptr, nullptr, mpi_->funneled, &provided))
    fail("workers: {} does not start: {}", mpi_->name, mpi_->text_of(code));
  mpi_->comm_set_errhandler(mpi_->world, mpi_->errors_return);
  mpi_->comm_rank(mpi_->world, &rank_);
  mpi_->comm_size(mpi_->world, &size_);
  if (size_ != launch_.size || rank_ != launch_.rank)
    fail(Hint{"TENON_MPI_LIBRARY names the library of the mpirun that started the program"},
         "workers: {} is {}, but {} counts {} workers: it is not the MPI of the launcher",
         launch_.variable, launch_.size, mpi_->name, size_);
  if (int code = mpi_->comm_dup(mpi_->world, &comm_))
    fail("workers: {} fails: {}", mpi_->name, mpi_->text_of(code));
  mpi_->comm_set_errhandler(comm_, mpi_->errors_return);
}

void MpiLink::poll() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);  // signals are for the program's threads
  try {
    initialize();
  } catch (...) {
    error_ = std::current_exception();
  }
  state_.store(error_ ? 2 : 1, std::memory_order_release);
  wake(state_);
  if (error_) return;
  Clock::time_point worked = Clock::now(), attended = {};
  for (;;) {
    uint32_t seen = wanted_.load();
    bool is_busy = move_jobs();
    Clock::time_point now = Clock::now();
    if (is_busy) worked = now;
    if (now - attended > std::chrono::milliseconds(kIdleMilliseconds)) attended = now, attend();
    if (is_leaving_ && (have_all_left() || has_reported_) && (sent_.empty() || is_broken_)) break;
    if (is_busy && !may_spin_) sched_yield();
    if (!is_busy && !(may_spin_ && now - worked < kPollSpin))
      sleep_until_change(wanted_, seen, kIdleMilliseconds);
  }
  if (!has_reported_) {  // after a failure it would wait for those that are gone
    if (expected_) {
      MpiLibrary::Status status;
      mpi_->cancel(&expected_->request);
      for (int flag = 0; !flag && !mpi_->test(&expected_->request, &flag, &status);) sched_yield();
    }
    mpi_->finalize();
  }
  state_.store(3, std::memory_order_release);
  wake(state_);
}

// Jobs -------------------------------------------------------------------------------------------

void MpiLink::run(std::span<const Transfer> transfers, FunctionRef<void()> check) {
  if (transfers.empty()) return;
  auto job = std::make_shared<Job>();
  for (Transfer t : transfers) {
    do {  // in messages whose length is an int
      Transfer piece = t;
      piece.bytes = std::min(t.bytes, kMostBytes);
      job->transfers.push_back(piece);
      t.data = static_cast<std::byte*>(t.data) + piece.bytes, t.bytes -= piece.bytes;
    } while (t.bytes > 0);
  }
  {
    std::lock_guard lock(mutex_);
    posted_.push_back(job);
  }
  wanted_.fetch_add(1);
  wake(wanted_);
  Clock::time_point began = Clock::now();
  while (may_spin_ && job->state.load(std::memory_order_acquire) == 0 &&
         Clock::now() - began < 4 * kPollSpin) {
  }
  try {
    while (job->state.load(std::memory_order_acquire) == 0) {
      sleep_until_change(job->state, 0, kCheckMilliseconds);
      if (job->state.load(std::memory_order_acquire) == 0) check();
    }
  } catch (...) {  // the memory belongs to the caller again when the job has been dropped
    uint32_t running = 0;
    if (job->state.compare_exchange_strong(running, 2))
      while (job->state.load() == 2 && state_.load() == 1) sleep_until_change(job->state, 2, 50);
    throw;
  }
  if (!job->error.empty()) throw WorkerFailed(job->error);
}

void MpiLink::begin(Job& job) {
  job.requests.resize(job.transfers.size());
  job.is_done.assign(job.transfers.size(), false);
  job.left = job.transfers.size();
  for (size_t i = 0; i < job.transfers.size(); ++i) {
    const Transfer& t = job.transfers[i];
    int count = static_cast<int>(t.bytes);
    int code = t.sends
                   ? mpi_->isend(t.data, count, mpi_->byte, t.peer, t.tag, comm_, &job.requests[i])
                   : mpi_->irecv(t.data, count, mpi_->byte, t.peer, t.tag, comm_, &job.requests[i]);
    if (code) job.error = mpi_->text_of(code), job.is_done[i] = true, --job.left;
  }
}

/// Whether a transfer is done, or has failed: then MPI has released its request.
bool MpiLink::test(Job& job, size_t i) {
  MpiLibrary::Status status;
  int flag = 0;
  if (int code = mpi_->test(&job.requests[i], &flag, &status))
    job.error = mpi_->text_of(code), flag = 1;
  if (flag) job.is_done[i] = true, --job.left;
  return flag;
}

/// Cancels receives that have not begun. What has begun is given a second, after which it goes on
/// in memory that the caller frees: a request cannot be recalled, and freeing it stops nothing. So
/// MPI must not make progress from then on.
void MpiLink::drop(Job& job) {
  for (size_t i = 0; i < job.requests.size() && !is_broken_; ++i)
    if (!job.is_done[i] && !job.transfers[i].sends) mpi_->cancel(&job.requests[i]);
  Clock::time_point end = Clock::now() + std::chrono::seconds(1);
  while (job.left > 0 && !is_broken_ && Clock::now() < end) {
    for (size_t i = 0; i < job.requests.size(); ++i)
      if (!job.is_done[i]) test(job, i);
    sched_yield();
  }
  if (job.left > 0) give_up();
}

/// Reports that this worker has failed, and ends all calls of MPI.
void MpiLink::give_up() {
  if (is_broken_) return;
  if (is_watching_.load(std::memory_order_acquire)) {
    std::string where = whereabouts(memory_->record(own_place()));
    memory_->fail_all(format("{} left a transfer{}", name_of(rank_), where));
    report_failure();
    Clock::time_point end = Clock::now() + std::chrono::seconds(1);
    for (; !sent_.empty() && Clock::now() < end; sched_yield()) reap_notes();
  }
  is_broken_ = has_reported_ = true;
}

/// Whether there are any.
bool MpiLink::move_jobs() {
  {
    std::lock_guard lock(mutex_);
    for (; !posted_.empty(); posted_.pop_front()) jobs_.push_back(std::move(posted_.front()));
  }
  for (std::shared_ptr<Job>& job : jobs_) {
    bool is_unwanted = job->state.load() == 2;
    if (job->requests.empty() && !is_unwanted && !is_broken_) begin(*job);
    for (size_t i = 0; i < job->requests.size() && !is_unwanted && !is_broken_; ++i)
      if (!job->is_done[i]) test(*job, i);
    if (is_broken_ && job->error.empty()) job->error = "MPI was given up after a failure";
    // After an error the other transfers of a job may never end.
    if (is_unwanted || !job->error.empty())
      drop(*job);
    else if (job->left > 0)
      continue;
    uint32_t running = 0;
    if (!job->state.compare_exchange_strong(running, 1)) job->state = 3;
    wake(job->state);
  }
  std::erase_if(jobs_, [](const auto& job) {
    uint32_t state = job->state.load();
    return state == 1 || state == 3;
  });
  return !jobs_.empty();
}

// Leaving ----------------------------------------------------------------------------------------

/// At the end of the process: returns when MPI may be left behind.
void MpiLink::leave() {
  if (getpid() != process_ || state_.load() != 1) return;  // a child of fork must not touch it
  if (is_watching_) {
    WorkerRecord& record = memory_->record(own_place());
    record.ended = 1;
    wake(record.arrived);
  }
  is_leaving_ = true;
  wanted_.fetch_add(1);
  wake(wanted_);
  // When a process ends after a failure, mpirun kills the others: they get a second to report it.
  Clock::time_point failed = {};
  for (;;) {
    bool has_failed = !is_watching_ || memory_->has_failed();
    if (has_failed && failed == Clock::time_point()) failed = Clock::now();
    if (has_failed && Clock::now() - failed > std::chrono::seconds(1)) return;
    if (!has_failed && state_.load() != 1) return;
    sleep_until_change(state_, state_.load(), 20);
  }
}

bool MpiLink::have_all_left() const {
  if (!is_watching_) return true;
  for (int k = 0; k < memory_->size(); ++k)
    if (!memory_->record(k).ended.load()) return false;
  for (int worker = 0; worker < size_; ++worker)
    if (machine_of_[static_cast<size_t>(worker)] != own_ && !has_left(worker)) return false;
  return has_said_goodbye_ || machines_.size() == 1;
}

int MpiLink::own_place() const {
  const std::vector<int>& here = machines_[static_cast<size_t>(own_)].workers;
  return static_cast<int>(std::ranges::find(here, rank_) - here.begin());
}

}  // namespace tn::workers
