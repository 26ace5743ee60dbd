#include "eval/background.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>

#include "base/interrupt.h"
#include "compiler/compile_graph.h"
#include "runtime/later.h"

namespace tn {

struct Worker::State {
  std::mutex mutex;
  std::condition_variable changed, idle;
  std::deque<Callback<void()>> jobs;
  bool busy = false, ending = false;
  std::atomic<bool> stopping = false;
  std::thread thread;

  void work(int nicer) {
    if (nicer) setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), nicer);
    stop_wanted = &stopping;
    std::unique_lock lock(mutex);
    while (changed.wait(lock, [&] { return ending || !jobs.empty(); }), !ending) {
      Callback<void()> job = std::move(jobs.front());
      jobs.pop_front();
      busy = true;
      lock.unlock();
      job();
      job = nullptr;
      lock.lock();
      busy = false;
      stopping = ending;
      idle.notify_all();
    }
  }
};

Worker::Made::Made() : state(new State) {}  // a thread may outlive all else

bool Worker::add(Callback<void()> job) {
  State& s = *made_->state;
  std::lock_guard lock(s.mutex);
  if (s.ending) return false;
  if (!s.thread.joinable()) s.thread = std::thread([&s, nicer = nicer_] { s.work(nicer); });
  s.jobs.push_back(std::move(job));
  s.changed.notify_one();
  return true;
}

void Worker::wait() {
  State& s = *made_->state;
  std::unique_lock lock(s.mutex);
  try {
    wait_or_stop(s.idle, lock, [&] { return !s.busy && (s.ending || s.jobs.empty()); });
  } catch (...) {
    stop();
    throw;
  }
}

void Worker::stop() {
  State& s = *made_->state;
  std::lock_guard lock(s.mutex);
  if (s.busy) s.stopping = true;
}

void Worker::end() {
  State& s = *made_->state;
  {
    std::lock_guard lock(s.mutex);
    s.ending = s.stopping = true;
  }
  s.changed.notify_one();
  if (s.thread.joinable()) s.thread.join();
  s.jobs.clear();
}

// They end before the statics of libraries that jobs use are destroyed.
Worker& evaluating_worker() {
  static Worker& only = *new Worker(0);
  [[maybe_unused]] static const int kEnds = std::atexit([] { only.end(); });
  return only;
}

Worker& compiling_worker() {
  constexpr int kNicer = 10;
  static Worker& only = *new Worker(kNicer);
  [[maybe_unused]] static const int kEnds = std::atexit([] { only.end(); });
  return only;
}

[[maybe_unused]] static const bool kInstalled =
    (run_later =
         [](Callback<void()> job, bool compiles) {
           if (compiles) {
             warm_up_compiler();
             // Also before the statics of the caller's code generator, which are newer than it.
             [[maybe_unused]] static const int kEnds =
                 std::atexit([] { compiling_worker().end(); });
           }
           return compiling_worker().add(std::move(job));
         },
     true);

void stop_background() { evaluating_worker().end(), compiling_worker().end(); }

void warm_up_compiler() {
  static const bool warm = [] {
    Graph graph = parse_graph("func @main(%x: f32[4]) -> f32[4] {\n%0 = exp %x\nreturn %0\n}");
    compile(graph, {.effort = Effort::e2});
    return std::atexit([] { compiling_worker().end(); }) == 0;  // before what was made just now
  }();
  (void)warm;
}

}  // namespace tn
