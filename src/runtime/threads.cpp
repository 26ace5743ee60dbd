#include "runtime/threads.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/at_fork.h"
#include "base/error.h"
#include "base/events.h"
#include "runtime/own_thread.h"

namespace tn {
namespace {

constexpr int kMaxThreads = 1024;
constexpr uint64_t kMaxChunks = 1u << 30;
// Nanoseconds of work, in one loop or several: less is done before a sleeping worker is there. From
// then on one is woken for each share.
constexpr double kWorthWaking = 150'000, kShare = 50'000;

void futex_wait(std::atomic<uint32_t>& word, uint32_t seen) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
}

void futex_wake(std::atomic<uint32_t>& word, int count) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

/// Spins until `done` holds or `limit` has passed; reads the clock rarely.
template <class Done>
bool spin_until(std::chrono::microseconds limit, Done done) {
  auto end = std::chrono::steady_clock::now() + limit;
  do {
    for (int i = 0; i < 64; ++i) {
      if (done()) return true;
      __builtin_ia32_pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return done();
}

struct Cpus {
  cpu_set_t set;
  int count;
};

/// Those this process may use, as it was started.
const Cpus& allowed_cpus() {
  static const Cpus cpus = [] {
    Cpus found;
    CPU_ZERO(&found.set);
    bool known = sched_getaffinity(0, sizeof found.set, &found.set) == 0;
    found.count =
        known ? CPU_COUNT(&found.set) : static_cast<int>(std::thread::hardware_concurrency());
    found.count = std::max(1, found.count);
    return found;
  }();
  return cpus;
}
// At load: a fork while another thread makes it would leave it half-made in the child.
[[maybe_unused]] const Cpus& cpus_at_load = allowed_cpus();

/// Chunks [begin, end) that are not claimed: begin in the high half, end in the low one.
class alignas(64) Share {
 public:
  void deal(ChunkRange chunks) {
    range_.store(static_cast<uint64_t>(chunks.begin) << 32 | static_cast<uint64_t>(chunks.end));
  }

  /// One of them, or -1.
  int64_t claim(bool from_front) {
    uint64_t range = range_.load(std::memory_order_acquire);
    for (;;) {
      uint64_t begin = range >> 32, end = static_cast<uint32_t>(range);
      if (begin == end) return -1;
      uint64_t rest = from_front ? range + (uint64_t{1} << 32) : range - 1;
      if (range_.compare_exchange_weak(range, rest, std::memory_order_acq_rel))
        return static_cast<int64_t>(from_front ? begin : end - 1);
    }
  }

 private:
  std::atomic<uint64_t> range_{0};
};

/// One set of workers and the job they share.
///
/// Every thread begins with a share of its own, the same in every job of as many chunks: what it
/// left in its caches it finds again, which counts where caches are far apart. Who has none left
/// takes from the far end of others'. A claim proves that the job is alive: it cannot end before
/// that chunk is reported in `finished_`. Hence a worker reads `body_` only after a claim, and the
/// caller need not wait for workers that have claimed nothing.
class Pool {
 public:
  explicit Pool(int workers);
  ~Pool();
  int workers() const { return workers_; }  // as asked; the system may have given fewer
  void run(uint64_t chunks, double nanoseconds, FunctionRef<void(int64_t)> body);

 private:
  void work(size_t thread);
  void wake(int count);
  void keep_off(int cpu);
  int64_t claim(size_t thread);
  uint64_t run_chunks(size_t thread);
  void run_chunk(int64_t chunk);
  void park(uint32_t seen);
  void wait_for(uint64_t others);

  alignas(64) std::atomic<uint32_t> job_{0};       // counts them; changes when shares are dealt
  alignas(64) std::atomic<uint32_t> finished_{0};  // chunks of this job done by workers
  std::atomic<bool> caller_parked_{false};
  alignas(64) std::atomic<int> parked_{0};
  std::atomic<bool> stop_{false};
  std::atomic<bool> failed_{false};
  std::atomic<bool> error_stored_{false};

  const int workers_;
  const FunctionRef<void(int64_t)>* body_ = nullptr;
  std::vector<Share> shares_;  // the caller's, then the workers'
  std::exception_ptr error_;
  std::chrono::microseconds spin_{1000};
  std::vector<std::thread> threads_;
  int callers_cpu_ = -1;
  double alone_ = 0;  // nanoseconds of work since workers fell asleep
};

thread_local bool inside_chunk = false;
thread_local int number_of_this = 0;

Pool::Pool(int workers) : workers_(workers), shares_(static_cast<size_t>(workers) + 1) {
  if (workers >= allowed_cpus().count) spin_ = std::chrono::microseconds(20);
  // Signals belong to the program's own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  threads_.reserve(static_cast<size_t>(workers));
  try {
    for (size_t i = 1; i < shares_.size(); ++i) threads_.emplace_back([this, i] { work(i); });
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    // The system gives no more threads, or no memory for one: fewer do the same work.
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Pool::~Pool() {
  stop_.store(true);
  job_.fetch_add(1);
  futex_wake(job_, INT_MAX);
  for (std::thread& thread : threads_) thread.join();
}

void Pool::run_chunk(int64_t chunk) {
  if (failed_.load(std::memory_order_relaxed)) return;
  try {
    (*body_)(chunk);
  } catch (...) {
    if (!error_stored_.exchange(true)) error_ = std::current_exception();
    failed_.store(true, std::memory_order_relaxed);
  }
}

int64_t Pool::claim(size_t thread) {
  int64_t chunk = shares_[thread].claim(true);
  for (size_t i = 1; chunk < 0 && i < shares_.size(); ++i)
    chunk = shares_[(thread + i) % shares_.size()].claim(false);
  return chunk;
}

uint64_t Pool::run_chunks(size_t thread) {
  uint64_t done = 0;
  bool watched = has_watcher(EventKind::share);
  Event share(EventKind::share, "", watched ? event_time() : 0);
  for (int64_t chunk; (chunk = claim(thread)) >= 0; ++done) run_chunk(chunk);
  share.value = done;
  if (watched && done) post_span(share);
  return done;
}

void Pool::work(size_t thread) {
  inside_chunk = true;
  number_of_this = static_cast<int>(thread);
  for (;;) {
    uint32_t seen = job_.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_relaxed)) return;
    if (uint64_t done = run_chunks(thread)) {
      finished_.fetch_add(static_cast<uint32_t>(done));
      if (caller_parked_.load()) futex_wake(finished_, 1);
    }
    if (!spin_until(spin_, [&] { return job_.load(std::memory_order_acquire) != seen; }))
      park(seen);
  }
}

void Pool::park(uint32_t seen) {
  parked_.fetch_add(1);
  // Either the caller sees this worker in `parked_` and wakes it, or this sees the caller's job.
  while (job_.load() == seen) futex_wait(job_, seen);
  parked_.fetch_sub(1);
}

void Pool::wait_for(uint64_t others) {
  auto done = [&] { return finished_.load(std::memory_order_acquire) == others; };
  if (spin_until(spin_, done)) return;
  caller_parked_.store(true);
  for (uint32_t seen = finished_.load(); seen != others; seen = finished_.load())
    futex_wait(finished_, seen);
  caller_parked_.store(false);
}

/// The system likes to wake a worker where its waker runs, and there it waits until the caller has
/// done everything alone. With a CPU for everybody, the workers leave the caller's to it.
void Pool::keep_off(int cpu) {
  const Cpus& cpus = allowed_cpus();
  if (cpu == callers_cpu_ || cpu < 0 || workers_ >= cpus.count) return;
  callers_cpu_ = cpu;
  cpu_set_t others = cpus.set;
  CPU_CLR(cpu, &others);
  for (std::thread& thread : threads_)
    pthread_setaffinity_np(thread.native_handle(), sizeof others, &others);
}

void Pool::wake(int count) {
  alone_ = 0;
  keep_off(sched_getcpu());
  futex_wake(job_, count);
}

void Pool::run(uint64_t chunks, double nanoseconds, FunctionRef<void(int64_t)> body) {
  body_ = &body;
  finished_.store(0, std::memory_order_relaxed);
  failed_.store(false, std::memory_order_relaxed);
  error_stored_.store(false, std::memory_order_relaxed);
  auto shares = static_cast<int64_t>(std::min<uint64_t>(chunks, shares_.size()));
  for (int64_t i = 0; i < shares; ++i)
    shares_[static_cast<size_t>(i)].deal(chunk_range(static_cast<int64_t>(chunks), shares, i));
  job_.fetch_add(1);
  int sleeping = parked_.load();
  alone_ = sleeping ? alone_ + nanoseconds : 0;
  if (alone_ >= kWorthWaking)
    wake(static_cast<int>(std::min(
        {static_cast<double>(sleeping), static_cast<double>(chunks - 1), alone_ / kShare})));
  inside_chunk = true;
  uint64_t own = run_chunks(0);
  inside_chunk = false;
  wait_for(chunks - own);
  if (error_stored_.load()) std::rethrow_exception(std::exchange(error_, nullptr));
}

// The pool lives until the process ends: its workers may outlast every static object, so nothing
// here is destroyed. The thread that holds `pool_in_use` may use and replace `pool`.
constinit std::atomic<bool> pool_in_use{false};
constinit Pool* pool = nullptr;
constinit Pool* parents_pool = nullptr;  // keeps what a child of fork gave up reachable
constinit std::atomic<int> wanted_threads{0};

/// The workers that MPI has started on this machine and not bound to cores share them.
int workers_beside() {
  if (allowed_cpus().count < static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN))) return 1;
  for (const char* variable : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"})
    if (const char* text = std::getenv(variable)) return std::max(1, std::atoi(text));
  return 1;
}

int threads_from_environment() {
  const char* text = std::getenv("TENON_NUM_THREADS");
  if (!text || !*text) return std::clamp(allowed_cpus().count / workers_beside(), 1, kMaxThreads);
  char* end = nullptr;
  long count = std::strtol(text, &end, 10);
  if (*end || count < 1) fail("TENON_NUM_THREADS: not a positive number: {}", text);
  return static_cast<int>(std::min<long>(count, kMaxThreads));
}

// A child of fork has none of the workers: it forgets the pool and makes its own when it needs one.
void forget_pool_in_child() {
  parents_pool = std::exchange(pool, nullptr);
  inside_chunk = false;
  pool_in_use.store(false);
}

[[maybe_unused]] const bool kForgotten = (in_child_after_fork(forget_pool_in_child), true);

struct PoolUse {
  bool granted = !pool_in_use.exchange(true, std::memory_order_acquire);
  ~PoolUse() {
    if (granted) pool_in_use.store(false, std::memory_order_release);
  }
};

Pool& pool_of(int workers) {
  if (!pool || pool->workers() != workers) {
    delete std::exchange(pool, nullptr);
    pool = new Pool(workers);
  }
  return *pool;
}

}  // namespace

int num_threads() {
  int count = wanted_threads.load(std::memory_order_relaxed);
  if (count) return count;
  count = threads_from_environment();
  int unset = 0;
  return wanted_threads.compare_exchange_strong(unset, count) ? count : unset;
}

void set_num_threads(int count) {
  if (count < 1) fail("set_num_threads: not a positive number: {}", count);
  wanted_threads.store(std::min(count, kMaxThreads), std::memory_order_relaxed);
}

int thread_number() { return number_of_this; }

OnOwnThread::OnOwnThread() : before_(std::exchange(inside_chunk, true)) {}
OnOwnThread::~OnOwnThread() { inside_chunk = before_; }

void parallel_for(int64_t chunks, int64_t nanoseconds_of_chunk,
                  FunctionRef<void(int64_t chunk)> body) {
  int64_t first = 0;
  if (chunks > 1 && !inside_chunk && num_threads() > 1) {
    PoolUse use;
    for (; use.granted && first < chunks; first += kMaxChunks) {
      uint64_t count = std::min<uint64_t>(static_cast<uint64_t>(chunks - first), kMaxChunks);
      double nanoseconds = static_cast<double>(count) * static_cast<double>(nanoseconds_of_chunk);
      pool_of(num_threads() - 1).run(count, nanoseconds, [&](int64_t c) { body(first + c); });
    }
  }
  for (; first < chunks; ++first) body(first);
}

}  // namespace tn
