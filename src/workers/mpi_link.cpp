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

constexpr auto kSpin = std::chrono::microseconds(50);  // before a driver yields its core
constexpr int kTries = 200;                            // to drive, before a thread sleeps
constexpr int kIdleMilliseconds = 5;  // between looks for notes while nobody drives
constexpr int kCheckMilliseconds = 50;
constexpr int64_t kMostBytes = int64_t{1} << 30;  // of one message
// What the end of a process waits for at most.
constexpr auto kReports = std::chrono::seconds(1);
constexpr auto kFinalizes = std::chrono::seconds(10);

}  // namespace

/// On the stack of its owner, who waits until it is over. Then nobody else has its address.
struct MpiLink::Job {
  struct Part {
    Transfer transfer;
    MpiLibrary::Handle request = 0;
    bool is_done = false;
  };
  std::vector<Part> parts;
  size_t left = 0;
  bool has_begun = false;
  std::string error;
  std::atomic<bool> is_unwanted = false, is_over = false;
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
  // A thread that waits, for every worker that may share these cores.
  const char* local = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  if (!local) local = std::getenv("MPI_LOCALNRANKS");
  int sharing = std::max(1, local ? std::atoi(local) : launch.size);
  may_spin_ = CPU_COUNT(&allowed) >= sharing;
  std::thread([this] { stay(); }).detach();
  while (state_.load(std::memory_order_acquire) == kStarts)
    sleep_until_change(state_, kStarts, 100);
  if (error_) std::rethrow_exception(error_);
  static MpiLink* leaving = nullptr;
  leaving = this;
  std::atexit([] { leaving->leave(); });
}

/// On the thread in the background, which also leaves MPI: some libraries want one thread for both.
void MpiLink::initialize() {
  int flag = 0, provided = 0;
  mpi_->initialized(&flag);
  if (flag)
    fail(Hint{"call tn.distributed.init() before other libraries that use MPI"},
         "workers: MPI was initialized before, on another thread");
  if (int code = mpi_->init_thread(nullptr, nullptr, mpi_->serialized, &provided))
    fail("workers: {} does not start: {}", mpi_->name, mpi_->text_of(code));
  if (provided < mpi_->serialized)
    fail(Hint{"use a build of MPI with support for threads (MPI_THREAD_SERIALIZED)"},
         "workers: {} does not let several threads take turns: it provides thread level {}, not {}",
         mpi_->name, provided, mpi_->serialized);
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

/// The thread in the background: drives for a moment, every few milliseconds.
void MpiLink::stay() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);  // signals are for the program's threads
  try {
    initialize();
  } catch (...) {
    error_ = std::current_exception();
  }
  enter(error_ ? kHasFailed : kIsReady);
  if (error_) return;
  for (bool has_left = false; !has_left;) {
    uint32_t seen = leaving_.load();
    std::unique_lock lock(driving_, std::try_to_lock);
    if (!lock && is_leaving_) lock.lock();
    if (lock) {
      attend(Clock::now());
      has_left = may_leave();
      if (has_left) finish();
      lock.unlock();
      announce();
    }
    if (!has_left) sleep_until_change(leaving_, seen, kIdleMilliseconds);
  }
  enter(kHasLeft);
}

void MpiLink::enter(State state) {
  state_.store(state, std::memory_order_release);
  wake(state_);
}

// Jobs -------------------------------------------------------------------------------------------

void MpiLink::run(std::span<const Transfer> transfers, FunctionRef<void()> check) {
  if (transfers.empty()) return;
  Job job;
  job.parts.reserve(transfers.size());
  for (Transfer t : transfers) {
    do {  // in messages whose length is an int
      Transfer piece = t;
      piece.bytes = std::min(t.bytes, kMostBytes);
      job.parts.push_back({piece});
      t.data = static_cast<std::byte*>(t.data) + piece.bytes, t.bytes -= piece.bytes;
    } while (t.bytes > 0);
  }
  {
    std::lock_guard lock(mutex_);
    posted_.push_back(&job);
    has_posted_.store(true, std::memory_order_release);
  }
  std::exception_ptr reason;  // to give up
  Clock::time_point checked = Clock::now();
  while (!job.is_over.load(std::memory_order_acquire)) {
    try {
      wait_or_drive(job);
      if (job.is_over.load(std::memory_order_acquire)) break;
      Clock::time_point now = Clock::now();
      bool is_due = now - checked >= std::chrono::milliseconds(kCheckMilliseconds);
      if (is_due && !reason) checked = now, check();
    } catch (...) {  // the memory belongs to the caller again when the job has been dropped
      reason = std::current_exception();
      job.is_unwanted = true;
    }
    // The thread in the background wants to drive, and is woken for it too slowly to be first.
    if (is_leaving_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (reason) std::rethrow_exception(reason);
  if (!job.error.empty()) throw WorkerFailed(job.error);
}

/// Returns when the job is over, or when it may be time to check. No wake-up is lost: a driver that
/// leaves changes `changes_` after it has released the lock, and looks for sleepers after that.
void MpiLink::wait_or_drive(const Job& job) {
  for (int i = 0; i < kTries; ++i)
    if (job.is_over.load(std::memory_order_acquire) || try_to_drive(job)) return;
  sleepers_.fetch_add(1);
  uint32_t seen = changes_.load();
  if (!job.is_over.load(std::memory_order_acquire) && !try_to_drive(job))
    sleep_until_change(changes_, seen, kCheckMilliseconds);
  sleepers_.fetch_sub(1);
}

/// Moves the jobs of all threads until `own` is over, or it is time to check.
bool MpiLink::try_to_drive(const Job& own) {
  std::unique_lock lock(driving_, std::try_to_lock);
  if (!lock) return false;
  for (Clock::time_point began = Clock::now();;) {
    move_jobs();
    Clock::time_point now = Clock::now();
    attend(now);
    if (own.is_over.load(std::memory_order_relaxed)) break;
    if (now - began >= std::chrono::milliseconds(kCheckMilliseconds)) break;
    if (!may_spin_ || now - began > kSpin) sched_yield();
  }
  lock.unlock();
  announce();
  return true;
}

void MpiLink::announce() {
  changes_.fetch_add(1);
  if (sleepers_.load() > 0) wake(changes_);
}

void MpiLink::move_jobs() {
  if (has_posted_.load(std::memory_order_acquire)) {
    std::lock_guard lock(mutex_);
    jobs_.insert(jobs_.end(), posted_.begin(), posted_.end());
    posted_.clear();
    has_posted_ = false;
  }
  bool has_one_ended = false;
  for (size_t i = 0; i < jobs_.size();) {
    Job* job = jobs_[i];
    if (!advance(*job)) {
      ++i;
      continue;
    }
    jobs_.erase(jobs_.begin() + static_cast<std::ptrdiff_t>(i));
    job->is_over.store(true, std::memory_order_release);  // its owner may free it
    has_one_ended = true;
  }
  if (has_one_ended) announce();
}

/// Whether the job is over.
bool MpiLink::advance(Job& job) {
  bool is_unwanted = job.is_unwanted;
  if (!is_unwanted && !is_broken_) {
    if (!job.has_begun) begin(job);
    for (size_t i = 0; i < job.parts.size(); ++i)
      if (!job.parts[i].is_done) test(job, i);
  }
  if (is_broken_ && job.error.empty()) job.error = "MPI was given up after a failure";
  // After an error the other transfers of a job may never end.
  if (is_unwanted || !job.error.empty()) return drop(job), true;
  return job.left == 0;
}

void MpiLink::begin(Job& job) {
  job.has_begun = true;
  job.left = job.parts.size();
  for (Job::Part& part : job.parts) {
    const Transfer& t = part.transfer;
    int count = static_cast<int>(t.bytes);
    int code = t.sends
                   ? mpi_->isend(t.data, count, mpi_->byte, t.peer, t.tag, comm_, &part.request)
                   : mpi_->irecv(t.data, count, mpi_->byte, t.peer, t.tag, comm_, &part.request);
    if (code) job.error = mpi_->text_of(code), part.is_done = true, --job.left;
  }
}

/// Notes a transfer that is done, or has failed: then MPI has released its request.
void MpiLink::test(Job& job, size_t i) {
  MpiLibrary::Status status;
  int flag = 0;
  if (int code = mpi_->test(&job.parts[i].request, &flag, &status))
    job.error = mpi_->text_of(code), flag = 1;
  if (flag) job.parts[i].is_done = true, --job.left;
}

/// Cancels receives that have not begun. What has begun is given a second, after which it goes on
/// in memory that the caller frees: a request cannot be recalled, and freeing it stops nothing. So
/// MPI must not make progress from then on.
void MpiLink::drop(Job& job) {
  if (!job.has_begun || is_broken_) return;
  for (Job::Part& part : job.parts)
    if (!part.is_done && !part.transfer.sends) mpi_->cancel(&part.request);
  Clock::time_point end = Clock::now() + std::chrono::seconds(1);
  while (job.left > 0 && Clock::now() < end) {
    for (size_t i = 0; i < job.parts.size(); ++i)
      if (!job.parts[i].is_done) test(job, i);
    sched_yield();
  }
  if (job.left > 0) give_up();
}

/// Reports that this worker has failed, and ends all calls of MPI.
void MpiLink::give_up() {
  if (is_watching_.load(std::memory_order_acquire)) {
    std::string where = whereabouts(memory_->record(own_place()));
    memory_->fail_all(format("{} left a transfer{}", name_of(rank_), where));
    report_failure();
    Clock::time_point end = Clock::now() + std::chrono::seconds(1);
    for (; !sent_.empty() && Clock::now() < end; sched_yield()) reap_notes();
  }
  is_broken_ = has_reported_ = true;
}

// Leaving ----------------------------------------------------------------------------------------

/// At the end of the process: returns when MPI may be left behind.
void MpiLink::leave() {
  if (getpid() != process_) return;  // a child of fork must not touch it
  if (state_.load() != kIsReady) return;
  if (is_watching_) {
    WorkerRecord& record = memory_->record(own_place());
    record.ended = 1;
    wake(record.arrived);
  }
  is_leaving_ = true;
  leaving_.fetch_add(1);
  wake(leaving_);
  // When a process ends after a failure, mpirun kills the others: they get a second to report it.
  // MPICH 4.0 can wait forever in MPI_Finalize: one process waits for all without serving another
  // one that still closes its connections (UCX through TCP).
  Clock::time_point began = {};  // what may last no longer
  for (;;) {
    uint32_t state = state_.load();
    bool has_failed = !is_watching_ || memory_->has_failed();
    if (!has_failed && state == kHasLeft) return;
    if (has_failed || state == kLeaves) {
      if (began == Clock::time_point()) began = Clock::now();
      if (Clock::now() - began > (has_failed ? kReports : kFinalizes)) return;
    }
    sleep_until_change(state_, state, 20);
  }
}

bool MpiLink::may_leave() const {
  return is_leaving_ && (have_all_left() || has_reported_) && (sent_.empty() || is_broken_);
}

void MpiLink::finish() {
  if (!has_reported_) {  // after a failure it would wait for those that are gone
    if (expected_) {
      MpiLibrary::Status status;
      mpi_->cancel(&expected_->request);
      for (int flag = 0; !flag && !mpi_->test(&expected_->request, &flag, &status);) sched_yield();
    }
    enter(kLeaves);
    mpi_->finalize();
  }
  is_broken_ = true;
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
