#include "mesh/mesh_world.h"

#include <signal.h>

#include <condition_variable>
#include <optional>
#include <system_error>
#include <thread>

#include "base/at_fork.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "ops/index_bounds.h"
#include "runtime/own_thread.h"
#include "tenon/threads.h"
#include "workers/world.h"

namespace tn::mesh {
namespace {

thread_local int worker_number = -1;

/// On this thread, until the end of the scope.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t every;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

/// Threads that wait for work, made when they are needed. The caller of `run` is the first worker.
class WorkerThreads {
 public:
  static WorkerThreads& all() {
    static auto& only = *new WorkerThreads;
    return only;
  }

  /// `before` is done when no other run is under way. `stop` makes the others end: the user has
  /// interrupted the caller, who waits for them.
  void run(int count, FunctionRef<void()> before, FunctionRef<void(int)> work,
           FunctionRef<void()> stop) {
    std::lock_guard one(runs_);
    before();
    {
      std::lock_guard lock(mutex_);
      while (threads_ < count - 1) start();
      work_ = &work, wanted_ = count, left_ = count - 1, ++round_;
    }
    changed_.notify_all();
    work(0);
    std::exception_ptr interrupt;
    std::unique_lock lock(mutex_);
    auto is_over = [&] { return left_ == 0; };
    try {
      wait_or_stop(done_, lock, is_over);
    } catch (...) {
      interrupt = std::current_exception();
      stop();
      lock.lock();
      done_.wait(lock, is_over);
    }
    work_ = nullptr;
    if (interrupt) std::rethrow_exception(interrupt);
  }

 private:
  WorkerThreads() { guarded_at_fork(mutex_, kInnermost); }

  void start() {
    SignalsBlocked blocked;  // signals are for the program's own threads
    int number = threads_ + 1;
    try {
      std::thread([this, number, seen = round_] { serve(number, seen); }).detach();
    } catch (const std::system_error& error) {
      fail(Hint{"use fewer workers"}, "mesh: cannot start a thread for worker {}: {}", number,
           error.code().message());
    }
    threads_ = number;
  }

  void serve(int number, uint64_t seen) {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return round_ != seen; });
      seen = round_;
      if (number >= wanted_) continue;
      FunctionRef<void(int)> work = *work_;
      lock.unlock();
      work(number);
      lock.lock();
      if (--left_ == 0) done_.notify_all();
    }
  }

  std::mutex runs_, mutex_;
  std::condition_variable changed_, done_;
  const FunctionRef<void(int)>* work_ = nullptr;
  int wanted_ = 0, left_ = 0, threads_ = 0;
  uint64_t round_ = 0;
};

}  // namespace

int current_worker() { return worker_number; }

void fail_not_here(std::string_view who, const MeshWorld& world) {
  fail(Hint{"x.to(mesh), the whole mesh, brings it to all processes; tn.distributed.gather(x) to "
            "their hosts, if every worker calls it",
            "x.to(mesh), the whole mesh, brings it to all processes; tn::gather(x) to their hosts, "
            "if every worker calls it"},
       "{}: this process holds nothing of the tensor, which lies on {}", who, world.name());
}

MeshWorld::MeshWorld(Mesh mesh, std::string name, int rank, MeshWorld* whole)
    : mesh_(std::move(mesh)),
      name_(std::move(name)),
      rank_(rank),
      first_(rank < 0 ? 0 : static_cast<int>(worker_of_part(mesh_, rank))),
      waits_(here()) {
  whole_ = intern({Layout(mesh_), 0});
  if (is_threads())
    make_threads();
  else if (whole)
    take_groups(*whole);
  else
    make_processes();
}

void MeshWorld::make_threads() {
  groups_.resize(static_cast<size_t>(here()));
  for (int t = 0; t < mesh_.count(); ++t) {
    std::vector<workers::ThreadGroup*> of(static_cast<size_t>(here()));
    int stride = 1;  // between neighbours along the axis
    for (int u = t + 1; u < mesh_.count(); ++u) stride *= static_cast<int>(mesh_[u].size);
    for (int w = 0; w < here(); ++w) {
      auto k = static_cast<int>(coordinate(mesh_, w, t));
      if (k == 0) {
        workers::GroupMembers members{mesh_[t].name, w, stride, static_cast<int>(mesh_[t].size)};
        meetings_.push_back(std::make_unique<workers::ThreadGroup>(members, here(), waits_));
        of[static_cast<size_t>(w)] = meetings_.back().get();
      }
      workers::ThreadGroup* group = of[static_cast<size_t>(w - k * stride)];
      transports_.push_back(std::make_unique<workers::ThreadTransport>(*group, k));
      auto number = [&](int worker) { return static_cast<int>(number_in_whole(mesh_, worker)); };
      int first = w - k * stride, next = mesh_[t].size > 1 ? first + stride : first;
      groups_[static_cast<size_t>(w)].push_back(
          {mesh_[t].name, transports_.back().get(), number(first), number(next) - number(first)});
    }
  }
}

/// Every process makes the same meshes in the same order.
void MeshWorld::make_processes() {
  workers::Transport& all = workers::group(workers::kWorld);
  groups_.resize(1);
  for (int t = 0; t < mesh_.count(); ++t) {
    auto k = static_cast<int>(coordinate(mesh_, rank_, t));
    int stride = 1;
    for (int u = t + 1; u < mesh_.count(); ++u) stride *= static_cast<int>(mesh_[u].size);
    transports_.push_back(all.split(rank_ - k * stride, k));
    groups_[0].push_back({mesh_[t].name, transports_.back().get(), rank_ - k * stride, stride});
  }
}

/// The workers of a part along one of its axes are those of the whole mesh.
void MeshWorld::take_groups(const MeshWorld& whole) {
  groups_.resize(1);
  for (const workers::LocalGroup& group : whole.groups_[0])
    if (mesh_.find(group.name) >= 0) groups_[0].push_back(group);
}

const Division* MeshWorld::intern(Division division) {
  std::lock_guard lock(mutex_);
  for (const auto& known : divisions_)
    if (*known == division) return known.get();
  return divisions_.emplace_back(std::make_unique<Division>(std::move(division))).get();
}

void MeshWorld::stop_all() {
  for (auto& meeting : meetings_) meeting->stop();
}

void MeshWorld::run(const workers::RunOrigins& origins, FunctionRef<void(int worker)> work) {
  if (here() == 0) return;
  if (here() == 1) {
    workers::LocalGroupsScope groups(groups_[0], origins);
    return work(0);
  }
  std::atomic<bool> ends = false;
  std::vector<std::exception_ptr> errors(static_cast<size_t>(here()));
  bool alone = num_threads() < 2 * here();  // a worker has less than two cores
  bool checked = ops::indices_are_checked;
  auto stop = [&] {
    ends = true;
    stop_all();
  };
  auto reset = [&] {
    for (auto& meeting : meetings_) meeting->reset();
    waits_.reset();
    waits_.stop_all = stop;
  };
  auto one = [&](int worker) {
    std::optional<OnOwnThread> own;
    if (alone) own.emplace();
    workers::LocalGroupsScope groups(groups_[static_cast<size_t>(worker)]);
    worker_number = worker;
    if (worker > 0) stop_wanted = &ends, ops::indices_are_checked = checked;
    try {
      work(worker);
    } catch (...) {
      errors[static_cast<size_t>(worker)] = std::current_exception();
      stop();
    }
    waits_.has_ended(worker);
    if (worker > 0) stop_wanted = nullptr;
    worker_number = -1;
  };
  WorkerThreads::all().run(here(), reset, one, stop);
  // What made the others stop comes first.
  std::exception_ptr stopped;
  for (const std::exception_ptr& error : errors) {
    if (!error) continue;
    try {
      std::rethrow_exception(error);
    } catch (const Stopped&) {
      if (!stopped) stopped = error;
    }
  }
  if (stopped) std::rethrow_exception(stopped);
}

}  // namespace tn::mesh
