#include "workers/thread_transport.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <thread>

#include "base/error.h"
#include "base/interrupt.h"
#include "workers/rank_fold.h"
#include "workers/shared_transport.h"
#include "workers/worker_watch.h"

namespace tn::workers {
namespace {

constexpr int64_t kFoldedByAll = 64 << 10;  // up to here every worker folds all of it
constexpr int kSpins = 2000;                // some 20 us
constexpr int kSliceMilliseconds = 50;      // between looks at the user's interrupt

std::byte* at(void* p, int64_t offset) { return static_cast<std::byte*>(p) + offset; }
const std::byte* at(const void* p, int64_t offset) {
  return static_cast<const std::byte*>(p) + offset;
}

}  // namespace

ThreadGroup::ThreadGroup(int size)
    : members_{.size = size},
      own_waits_(size),
      waits_(own_waits_),
      calls_(static_cast<size_t>(size)) {}

ThreadGroup::ThreadGroup(GroupMembers members, ThreadWaits& waits)
    : members_(members), own_waits_(0), waits_(waits), calls_(static_cast<size_t>(members.size)) {}

void ThreadGroup::reset() {
  begin_.reset(), end_.reset();
  own_waits_.reset();
}

std::vector<const void*> ThreadGroup::operands(int64_t offset) const {
  std::vector<const void*> list;
  for (const CollectiveCall* call : calls_) list.push_back(at(call->in, offset));
  return list;
}

void Gate::wake_all() {
  if (sleepers_.load() > 0) wake(state_);
}

void Gate::stop() {
  state_.fetch_or(kStopped);
  wake_all();
}

uint32_t Gate::arrive(int size) {
  uint32_t before = state_.load(), after;
  bool is_last;
  do {
    if (before & kStopped) throw Stopped();
    is_last = (before & kArrived) + 1 == static_cast<uint32_t>(size);
    after = is_last ? (before & ~kArrived) + kRound : before + 1;
  } while (!state_.compare_exchange_weak(before, after));
  if (is_last) wake_all();
  return before / kRound;
}

std::exception_ptr Gate::wait(uint32_t arrival, bool spins, Look look) {
  for (int i = 0; spins && i < kSpins; ++i) {
    if (round() != arrival) return nullptr;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  struct Sleeper {
    std::atomic<uint32_t>& count;
    explicit Sleeper(std::atomic<uint32_t>& sleepers) : count(sleepers) { count.fetch_add(1); }
    ~Sleeper() { count.fetch_sub(1); }
  } sleeper(sleepers_);
  for (bool has_slept = false;; has_slept = true) {
    uint32_t now = state_.load();
    if (now / kRound != arrival) return nullptr;
    if (now & kStopped) throw Stopped();
    try {
      if (has_slept) look(arrival);
    } catch (...) {
      if (state_.fetch_or(kStopped) / kRound != arrival) return std::current_exception();
      wake_all();
      throw;
    }
    sleep_until_change(state_, now, kSliceMilliseconds);
  }
}

/// All workers compare the same calls, so all of them throw.
void ThreadGroup::check_alike() const {
  if (std::ranges::all_of(calls_, [&](auto* call) { return is_same(*call, *calls_[0]); })) return;
  std::vector<NotMet::Worker> all;
  for (int rank = 0; rank < size(); ++rank)
    all.push_back({number_of(rank),
                   NotMet::Doing::waits,
                   text_of(members_, call_of(rank)),
                   {},
                   call_of(rank).loc});
  throw NotMet("workers disagree", std::move(all));
}

void ThreadGroup::together(int rank, const CollectiveCall& call, FunctionRef<void()> work) {
  calls_[static_cast<size_t>(rank)] = &call;
  auto began = std::chrono::steady_clock::now();
  struct Waiting {
    ThreadWaits& waits;
    int worker;
    bool is_entered = false;
    ~Waiting() {
      if (is_entered) waits.goes_on(worker);
    }
  } waiting{waits_, number_of(rank)};
  static const bool spins = std::thread::hardware_concurrency() > 2;
  auto look = [&](uint32_t arrival) {
    if (!waiting.is_entered) waits_.waits(waiting.worker, begin_, arrival, members_, call);
    waiting.is_entered = true;
    stop_if_asked();
    waits_.check_for_progress();
    auto time = std::chrono::duration_cast<std::chrono::seconds>(collective_timeout());
    if (std::chrono::steady_clock::now() - began > time) waits_.fail_late(time);
  };
  std::exception_ptr error = begin_.wait(begin_.arrive(size()), spins, look);
  try {
    check_alike();
    work();
  } catch (...) {
    error = std::current_exception();
  }
  // No worker leaves with memory that others read or write. All have work with an end.
  end_.wait(end_.arrive(size()), spins, [](uint32_t) {});
  if (error) std::rethrow_exception(error);
}

void ThreadTransport::reduce(const CollectiveCall& call) {
  int64_t width = element_bytes(call.element);
  if (call.count * width <= kFoldedByAll && call.in != call.out) {
    fold(call.fold, call.element, group_.operands(0), call.out, call.count);
    return;
  }
  // Every worker folds a part of the elements and gives it to all.
  int64_t begin = call.count * rank_ / size(), end = call.count * (rank_ + 1) / size();
  int64_t offset = begin * width;
  auto bytes = static_cast<size_t>((end - begin) * width);
  if (bytes == 0) return;
  fold(call.fold, call.element, group_.operands(offset), at(call.out, offset), end - begin);
  for (int k = 0; k < size(); ++k)
    if (k != rank_) std::memcpy(at(group_.call_of(k).out, offset), at(call.out, offset), bytes);
}

void ThreadTransport::run(const CollectiveCall& call) {
  int64_t bytes = call.count * static_cast<int64_t>(element_bytes(call.element));
  auto copy = [&](int to, int from, const void* source) {
    if (bytes)
      std::memcpy(at(call.out, to * bytes), at(source, from * bytes), static_cast<size_t>(bytes));
  };
  WaitScope waiting;  // but for the work in between
  group_.together(rank_, call, [&] {
    WorkScope working;
    switch (call.kind) {
      case Collective::all_reduce:
        return reduce(call);
      case Collective::all_gather:
        for (int k = 0; k < size(); ++k) copy(k, 0, group_.call_of(k).in);
        return;
      case Collective::reduce_scatter:
        fold(call.fold, call.element, group_.operands(rank_ * bytes), call.out, call.count);
        return;
      case Collective::all_to_all:
        for (int k = 0; k < size(); ++k) copy(k, rank_, group_.call_of(k).in);
        return;
      case Collective::broadcast:
        if (rank_ != call.peer || call.in != call.out) copy(0, 0, group_.call_of(call.peer).in);
        return;
      default:
        return;
    }
  });
}

void ThreadTransport::send(const CollectiveCall&) {
  throw_internal("threads of a mesh send nothing");
}
void ThreadTransport::receive(const CollectiveCall&) {
  throw_internal("threads of a mesh receive nothing");
}
std::unique_ptr<Transport> ThreadTransport::split(int, int) {
  throw_internal("groups of a mesh are not split");
}

}  // namespace tn::workers
