#include "frontend/background.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>

#include "base/at_fork.h"
#include "base/interrupt.h"
#include "compiler/compile.h"

namespace tn {

namespace {

/// Where there are fewer CPUs than threads, the program's own go first.
void yield_to_others() {
  constexpr int kNicer = 10;
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kNicer);
}

class Worker {
 public:
  void add(std::function<void()> job) {
    std::lock_guard lock(mutex_);
    if (stopping_) return;
    jobs_.push_back(std::move(job));
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
    changed_.notify_one();
  }

  /// Before the statics of libraries that jobs use are destroyed.
  void stop() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) thread_.join();
    jobs_.clear();
  }

  static Worker*& current() {
    static Worker* worker = fresh();
    return worker;
  }
  /// The thread of the parent is not there in the child, nor what it was doing.
  static void renew() { current() = new Worker; }

 private:
  static Worker* fresh() {
    in_child_after_fork(renew);
    std::atexit(stop_background);
    return new Worker;
  }

  void work() {
    stop_wanted = &stopping_;
    yield_to_others();
    while (true) {
      std::function<void()> job;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
        if (stopping_) return;
        job = std::move(jobs_.front());
        jobs_.pop_front();
      }
      job();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  std::thread thread_;
  std::atomic<bool> stopping_ = false;
};

}  // namespace

void warm_up_compiler() {
  static const bool warm = [] {
    Graph graph = parse_graph("func @main(%x: f32[4]) -> f32[4] {\n%0 = exp %x\nreturn %0\n}");
    compile(graph, {.effort = Effort::e2});
    return true;
  }();
  (void)warm;
}

void in_background(std::function<void()> job) { Worker::current()->add(std::move(job)); }

void stop_background() { Worker::current()->stop(); }

}  // namespace tn
