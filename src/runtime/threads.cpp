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

#include "base/error.h"

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

/// One set of workers and the job they share.
///
/// `ticket_` holds the job's number in its high half and the chunks not yet claimed in its low
/// half. A successful claim proves that the job is alive: it cannot end before that chunk is
/// reported in `finished_`. Hence a worker reads `body_` and `chunks_` only after a claim, and the
/// caller need not wait for workers that have claimed nothing.
class Pool {
 public:
  explicit Pool(int workers);
  ~Pool();
  int workers() const { return workers_; }  // as asked; the system may have given fewer
  void run(uint64_t chunks, double nanoseconds, FunctionRef<void(int64_t)> body);

 private:
  void work();
  void wake(int count);
  void keep_off(int cpu);
  uint64_t run_chunks();
  void run_chunk(uint64_t chunk);
  void park();
  void wait_for(uint64_t others);
  bool has_work() const { return static_cast<uint32_t>(ticket_.load(std::memory_order_acquire)); }

  alignas(64) std::atomic<uint64_t> ticket_{0};
  alignas(64) std::atomic<uint32_t> finished_{0};  // chunks of this job done by workers
  std::atomic<bool> caller_parked_{false};
  alignas(64) std::atomic<uint32_t> wake_{0};
  std::atomic<int> parked_{0};
  std::atomic<bool> stop_{false};
  std::atomic<bool> failed_{false};
  std::atomic<bool> error_stored_{false};

  const int workers_;
  const FunctionRef<void(int64_t)>* body_ = nullptr;
  uint64_t chunks_ = 0;
  std::exception_ptr error_;
  std::chrono::microseconds spin_{1000};
  std::vector<std::thread> threads_;
  int callers_cpu_ = -1;
  double alone_ = 0;  // nanoseconds of work since workers fell asleep
};

thread_local bool inside_chunk = false;

Pool::Pool(int workers) : workers_(workers) {
  if (workers >= allowed_cpus().count) spin_ = std::chrono::microseconds(20);
  // Signals belong to the program's own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  threads_.reserve(static_cast<size_t>(workers));
  try {
    for (int i = 0; i < workers; ++i) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    // The system gives no more threads: fewer do the same work.
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Pool::~Pool() {
  stop_.store(true);
  wake_.fetch_add(1);
  futex_wake(wake_, INT_MAX);
  for (std::thread& thread : threads_) thread.join();
}

void Pool::run_chunk(uint64_t chunk) {
  if (failed_.load(std::memory_order_relaxed)) return;
  try {
    (*body_)(static_cast<int64_t>(chunk));
  } catch (...) {
    if (!error_stored_.exchange(true)) error_ = std::current_exception();
    failed_.store(true, std::memory_order_relaxed);
  }
}

uint64_t Pool::run_chunks() {
  uint64_t done = 0;
  uint64_t ticket = ticket_.load(std::memory_order_acquire);
  while (static_cast<uint32_t>(ticket)) {
    if (!ticket_.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acq_rel)) continue;
    run_chunk(chunks_ - static_cast<uint32_t>(ticket));
    ++done;
    ticket = ticket_.load(std::memory_order_acquire);
  }
  return done;
}

void Pool::work() {
  inside_chunk = true;
  while (!stop_.load(std::memory_order_relaxed)) {
    if (uint64_t done = run_chunks()) {
      finished_.fetch_add(static_cast<uint32_t>(done));
      if (caller_parked_.load()) futex_wake(finished_, 1);
    }
    bool found =
        spin_until(spin_, [this] { return has_work() || stop_.load(std::memory_order_relaxed); });
    if (!found) park();
  }
}

void Pool::park() {
  uint32_t seen = wake_.load();
  parked_.fetch_add(1);
  // Either the caller sees this worker in `parked_` and wakes it, or this sees the caller's ticket.
  while (!static_cast<uint32_t>(ticket_.load()) && !stop_.load() && wake_.load() == seen)
    futex_wait(wake_, seen);
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
  wake_.fetch_add(1);
  futex_wake(wake_, count);
}

void Pool::run(uint64_t chunks, double nanoseconds, FunctionRef<void(int64_t)> body) {
  body_ = &body;
  chunks_ = chunks;
  finished_.store(0, std::memory_order_relaxed);
  failed_.store(false, std::memory_order_relaxed);
  error_stored_.store(false, std::memory_order_relaxed);
  uint64_t number = (ticket_.load(std::memory_order_relaxed) >> 32) + 1;
  ticket_.store(number << 32 | chunks);
  int sleeping = parked_.load();
  alone_ = sleeping ? alone_ + nanoseconds : 0;
  if (alone_ >= kWorthWaking)
    wake(static_cast<int>(std::min(
        {static_cast<double>(sleeping), static_cast<double>(chunks - 1), alone_ / kShare})));
  inside_chunk = true;
  uint64_t own = run_chunks();
  inside_chunk = false;
  wait_for(chunks - own);
  if (error_stored_.load()) std::rethrow_exception(std::exchange(error_, nullptr));
}

// The pool lives until the process ends: its workers may outlast every static object, so nothing
// here is destroyed. Whoever holds `pool_in_use` may use and replace `pool`.
constinit std::atomic<bool> pool_in_use{false};
constinit Pool* pool = nullptr;
constinit Pool* parents_pool = nullptr;  // keeps what a child of fork gave up reachable
constinit std::atomic<int> wanted_threads{0};

int threads_from_environment() {
  const char* text = std::getenv("TENON_NUM_THREADS");
  if (!text || !*text) return std::min(allowed_cpus().count, kMaxThreads);
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

struct PoolUse {
  bool granted = !pool_in_use.exchange(true, std::memory_order_acquire);
  ~PoolUse() {
    if (granted) pool_in_use.store(false, std::memory_order_release);
  }
};

Pool& pool_of(int workers) {
  static const int registered = pthread_atfork(nullptr, nullptr, forget_pool_in_child);
  static_cast<void>(registered);
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
