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
#include "workers/world_memory.h"

namespace tn::workers {
namespace {

constexpr int kSpins = 2000;            // some 20 to 80 us
constexpr int kSliceMilliseconds = 50;  // between looks at the user's interrupt

std::byte* at(void* p, int64_t offset) { return static_cast<std::byte*>(p) + offset; }
const std::byte* at(const void* p, int64_t offset) {
  return static_cast<const std::byte*>(p) + offset;
}

int64_t bytes_of(const CollectiveCall& call) {
  return call.count * static_cast<int64_t>(element_bytes(call.element));
}

constexpr int64_t kLineBytes = 64;

/// The elements that a worker folds for all: whole cache lines of `line`, but for the last.
struct Share {
  int64_t begin, end;
};
Share share_of(int64_t count, int64_t line, int rank, int size) {
  int64_t lines = (count + line - 1) / line;
  return {std::min(count, lines * rank / size * line),
          std::min(count, lines * (rank + 1) / size * line)};
}

/// A worker in a gate, entered in the list of those who wait once it has slept.
class Waiting {
 public:
  Waiting(ThreadWaits& waits, int worker, const Gate& gate, const GroupMembers& members,
          const CollectiveCall& call)
      : waits_(waits), worker_(worker), gate_(gate), members_(members), call_(call) {}
  ~Waiting() {
    if (is_entered_) waits_.goes_on(worker_);
  }
  Waiting(const Waiting&) = delete;

  void look(uint32_t arrival) {
    if (!is_entered_) waits_.waits(worker_, gate_, arrival, members_, call_);
    is_entered_ = true;
    stop_if_asked();
    waits_.check_for_progress();
    auto time = std::chrono::duration_cast<std::chrono::seconds>(collective_timeout());
    if (std::chrono::steady_clock::now() - began_ > time) waits_.fail_late(time);
  }

 private:
  ThreadWaits& waits_;
  int worker_;
  const Gate& gate_;
  const GroupMembers& members_;
  const CollectiveCall& call_;
  bool is_entered_ = false;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace

void Gate::Flag::wake_all() {
  if (sleepers.load() > 0) wake(state);
}

void Gate::stop() {
  for (Flag& flag : flags_) flag.state.fetch_or(kStopped), flag.wake_all();
}

void Gate::reset() {
  for (Flag& flag : flags_) flag.state = 0;
}

uint32_t Gate::arrive(int rank) {
  Flag& own = flags_[static_cast<size_t>(rank)];
  uint32_t before = own.state.load();
  do {
    if (before & kStopped) throw Stopped();
  } while (!own.state.compare_exchange_weak(before, before + kArrival));
  own.wake_all();
  return before + kArrival;
}

Gate::Fate Gate::fate(uint32_t arrival) const {
  Fate found = Fate::complete;
  for (const Flag& flag : flags_) {
    bool is_stopped = flag.state.load() & kStopped;
    if (flag.has_arrived(arrival)) continue;
    if (is_stopped) return Fate::stopped;
    found = Fate::open;
  }
  return found;
}

std::exception_ptr Gate::wait(uint32_t arrival, bool spins, Look look) {
  int spun = spins ? 0 : kSpins;
  for (Flag& flag : flags_) {
    for (; !flag.has_arrived(arrival) && spun < kSpins; ++spun) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    if (flag.has_arrived(arrival)) continue;
    try {
      sleep_until(flag, arrival, look);
    } catch (...) {
      stop();  // from here on the round is complete or stopped
      if (fate(arrival) == Fate::complete) return std::current_exception();
      throw;
    }
  }
  return nullptr;
}

void Gate::sleep_until(Flag& flag, uint32_t arrival, Look look) {
  struct Sleeper {
    std::atomic<uint32_t>& count;
    explicit Sleeper(std::atomic<uint32_t>& sleepers) : count(sleepers) { count.fetch_add(1); }
    ~Sleeper() { count.fetch_sub(1); }
  } sleeper(flag.sleepers);
  for (bool has_slept = false;; has_slept = true) {
    uint32_t now = flag.state.load();
    if (flag.has_arrived(arrival)) return;
    if (now & kStopped) throw Stopped();
    if (has_slept) look(arrival);
    sleep_until_change(flag.state, now, kSliceMilliseconds);
  }
}

ThreadGroup::ThreadGroup(int size, int all)
    : ThreadGroup(GroupMembers{.size = size}, all, own_waits_) {}

ThreadGroup::ThreadGroup(const GroupMembers& members, int all, ThreadWaits& waits)
    : size_(members.size),
      spins_(std::max(size_, all) <= static_cast<int>(std::thread::hardware_concurrency())),
      members_(members),
      own_waits_(size_),
      waits_(waits) {
  for (Ring& ring : rings_) {
    ring.progress.resize(static_cast<size_t>(size_));
    for (Round& round : ring.rounds) {
      round.begin.resize(size_), round.end.resize(size_);
      round.seats.resize(static_cast<size_t>(size_));
    }
  }
}

void ThreadGroup::stop() {
  for (Ring& ring : rings_)
    for (Round& round : ring.rounds) round.begin.stop();
}

void ThreadGroup::reset() {
  for (Ring& ring : rings_) {
    for (Round& round : ring.rounds) round.begin.reset(), round.end.reset();
    for (Progress& progress : ring.progress) progress = {};
  }
  own_waits_.reset();
}

uint64_t ThreadGroup::begin(int rank, const CollectiveCall& call, bool is_started) {
  Progress& own = rings_[is_started].progress[static_cast<size_t>(rank)];
  uint64_t number = own.begun, name = name_of(number, is_started);
  invariant(number < own.completed + kRounds, "workers: too many calls are under way");
  Round& here = round(name);
  Seat& seat = here.seats[static_cast<size_t>(rank)];
  seat.call = call;
  seat.digest = digest_of(call);
  seat.several.assign(call.pieces.begin(), call.pieces.end());
  seat.piece = {call.in, call.out, call.count};
  seat.pieces = call.pieces.empty() ? std::span(&seat.piece, 1) : std::span(seat.several);
  own.begin[place_of(name)] = here.begin.arrive(rank);
  ++own.begun;
  return name;
}

void ThreadGroup::complete(int rank, uint64_t name, FunctionRef<void()> work) {
  Progress& own = progress(name, rank);
  Round& here = round(name);
  uint32_t arrival = own.begin[place_of(name)];
  std::exception_ptr error;
  {
    Waiting waiting(waits_, number_of(rank), here.begin, members_, call_of(name, rank));
    error = here.begin.wait(arrival, spins_, [&](uint32_t a) { waiting.look(a); });
  }
  try {
    check_alike(name);
    invariant(number_in_ring(name) == own.completed, "workers: calls are completed out of order");
    work();
  } catch (...) {
    error = std::current_exception();
  }
  own.completed = number_in_ring(name) + 1;
  // No worker leaves with memory that others read or write.
  std::exception_ptr late = wait_for_end(rank, name);
  if (!error) error = late;
  if (error) std::rethrow_exception(error);
}

std::exception_ptr ThreadGroup::wait_for_end(int rank, uint64_t name) {
  std::exception_ptr error;
  Gate& end = round(name).end;
  Waiting waiting(waits_, number_of(rank), end, members_, call_of(name, rank));
  auto look = [&](uint32_t arrival) {
    if (error) return;
    try {
      waiting.look(arrival);
    } catch (...) {
      error = std::current_exception();
      waits_.stop_all();  // they complete what they have begun
    }
  };
  end.wait(end.arrive(rank), spins_, look);
  return error;
}

/// All workers compare the same calls, so all of them throw.
void ThreadGroup::check_alike(uint64_t number) const {
  bool alike = true;
  for (int rank = 1; rank < size_; ++rank)
    alike &= seat(number, rank).digest == seat(number, 0).digest;
  if (alike) return;
  std::vector<NotMet::Worker> all;
  for (int rank = 0; rank < size_; ++rank) {
    const CollectiveCall& call = call_of(number, rank);
    all.push_back({number_of(rank), NotMet::Doing::waits, text_of(members_, call), {}, call.loc});
  }
  log_error_site(ErrorSite::here());
  throw NotMet("workers disagree", std::move(all));
}

std::vector<const void*> ThreadGroup::operands(uint64_t number, int64_t offset) const {
  std::vector<const void*> list;
  for (int k = 0; k < size_; ++k) list.push_back(at(pieces_of(number, k)[0].in, offset));
  return list;
}

/// Every worker folds a part of the elements and gives it to all.
void ThreadTransport::reduce(uint64_t round) {
  const CollectiveCall& call = group_.call_of(round, rank_);
  auto width = static_cast<int64_t>(element_bytes(call.element));
  Share own = share_of(call.count, kLineBytes / width, rank_, size());
  std::span<const CallPiece> pieces = group_.pieces_of(round, rank_);
  int64_t first = 0;  // of the piece, among all elements
  for (size_t i = 0; i < pieces.size(); first += pieces[i++].count) {
    int64_t begin = std::max<int64_t>(own.begin - first, 0);
    int64_t end = std::min(own.end - first, pieces[i].count);
    if (begin >= end) continue;
    for (int k = 0; k < size(); ++k) {
      const CallPiece& piece = group_.pieces_of(round, k)[i];
      in_[static_cast<size_t>(k)] = at(piece.in, begin * width);
      out_[static_cast<size_t>(k)] = at(piece.out, begin * width);
    }
    fold_to_all(call.fold, call.element, in_, out_, end - begin, call.count * width);
  }
}

void ThreadTransport::work(uint64_t round) {
  const CollectiveCall& call = group_.call_of(round, rank_);
  int64_t bytes = bytes_of(call);
  auto copy = [&](int to, int from, const void* source) {
    if (bytes)
      std::memcpy(at(call.out, to * bytes), at(source, from * bytes), static_cast<size_t>(bytes));
  };
  auto operand = [&](int k) { return group_.pieces_of(round, k)[0].in; };
  switch (call.kind) {
    case Collective::all_reduce:
      return reduce(round);
    case Collective::all_gather:
      for (int k = 0; k < size(); ++k) copy(k, 0, operand(k));
      return;
    case Collective::reduce_scatter:
      fold(call.fold, call.element, group_.operands(round, rank_ * bytes), call.out, call.count);
      return;
    case Collective::all_to_all:
      for (int k = 0; k < size(); ++k) copy(k, rank_, operand(k));
      return;
    case Collective::broadcast:
      if (rank_ != call.peer || call.in != call.out) copy(0, 0, operand(call.peer));
      return;
    default:
      return;
  }
}

void ThreadTransport::run(const CollectiveCall& call) { complete(group_.begin(rank_, call)); }

uint64_t ThreadTransport::start(const CollectiveCall& call) {
  return group_.begin(rank_, call, true);
}

void ThreadTransport::complete(uint64_t round) {
  WaitScope waiting;  // but for the work in between
  group_.complete(rank_, round, [&] {
    WorkScope working;
    work(round);
  });
}

void ThreadTransport::abandon(uint64_t round) {
  try {
    complete(round);
  } catch (...) {  // not all have begun it, and they never will; the run fails in any case
  }
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
