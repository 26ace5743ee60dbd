#include "workers/thread_transport.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <thread>

#include "base/error.h"
#include "base/interrupt.h"
#include "workers/rank_fold.h"
#include "workers/worker_watch.h"

namespace tn::workers {
namespace {

constexpr int64_t kFoldedByAll = 64 << 10;  // up to here every worker folds all of it
constexpr int kSpins = 2000;                // some 20 us

std::byte* at(void* p, int64_t offset) { return static_cast<std::byte*>(p) + offset; }
const std::byte* at(const void* p, int64_t offset) {
  return static_cast<const std::byte*>(p) + offset;
}

}  // namespace

ThreadGroup::ThreadGroup(int size) : calls_(static_cast<size_t>(size)) {}

void ThreadGroup::reset() { begin_.reset(), end_.reset(); }

std::vector<const void*> ThreadGroup::operands(int64_t offset) const {
  std::vector<const void*> list;
  for (const CollectiveCall* call : calls_) list.push_back(at(call->in, offset));
  return list;
}

void Gate::stop() {
  state_.fetch_or(kStopped);
  state_.notify_all();
}

void Gate::pass(int size) {
  static const bool has_cores = std::thread::hardware_concurrency() > 2;
  uint32_t before = state_.load(), after;
  bool is_last;
  do {
    if (before & kStopped) throw Stopped();
    is_last = (before & kArrived) + 1 == static_cast<uint32_t>(size);
    after = is_last ? (before & ~kArrived) + kRound : before + 1;
  } while (!state_.compare_exchange_weak(before, after));
  if (is_last) return state_.notify_all();
  for (int i = 0;; ++i) {
    uint32_t now = state_.load();
    if (now / kRound != before / kRound) return;
    if (now & kStopped) throw Stopped();
    if (!has_cores || i >= kSpins) state_.wait(now);
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
}

void ThreadGroup::together(int rank, const CollectiveCall& call, FunctionRef<void()> work) {
  calls_[static_cast<size_t>(rank)] = &call;
  begin_.pass(size());
  std::exception_ptr error;
  try {
    work();
  } catch (...) {
    error = std::current_exception();
  }
  end_.pass(size());  // no worker leaves with memory that others read or write
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
