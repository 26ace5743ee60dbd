#include "workers/shared_transport.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "base/environment_number.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "ir/place.h"
#include "plan/run_places.h"
#include "tenon/distributed.h"
#include "workers/circular_waits.h"
#include "workers/rank_fold.h"
#include "workers/worker_watch.h"

namespace tn::workers {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kSpin = std::chrono::microseconds(20);
constexpr int kSliceMilliseconds = 50;       // between looks at the user's interrupt
constexpr int64_t kOneShotBytes = 16 << 10;  // of others: up to here every worker folds all of it
/// Of a large operand, what is in the slots at once: the caches of a core hold it.
constexpr int64_t kPieceBytes = 256 << 10;
static_assert(2 * kPieceBytes <= kSlotBytes);

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Of `count` elements, those of part `k` of `parts`.
struct Range {
  int64_t begin, end;
};
Range part_of(int64_t count, int k, int parts) {
  return {count * k / parts, count * (k + 1) / parts};
}

const std::byte* bytes_at(const void* p, int64_t offset) {
  return static_cast<const std::byte*>(p) + offset;
}
std::byte* bytes_at(void* p, int64_t offset) { return static_cast<std::byte*>(p) + offset; }

std::string place_text(std::string_view place) {
  return place.empty() ? std::string() : format(" ({})", place);
}

}  // namespace

static constinit std::atomic<int> without_timeout = 0;
WithoutTimeout::WithoutTimeout() { ++without_timeout; }
WithoutTimeout::~WithoutTimeout() { --without_timeout; }

std::chrono::steady_clock::duration collective_timeout() {
  if (without_timeout > 0) return std::chrono::steady_clock::duration::max();
  static const int64_t seconds = environment_number("TENON_COLLECTIVE_TIMEOUT", 1, 300);
  return std::chrono::seconds(seconds);
}

SharedTransport::SharedTransport(std::shared_ptr<WorldMemory> memory, int rank)
    : memory_(std::move(memory)), world_(memory_), rank_(rank), size_(memory_->size()) {
  invariant(rank >= 0 && rank < size_, "workers: rank {} of {}", rank, size_);
  may_spin_ = size_ <= static_cast<int>(std::thread::hardware_concurrency());
  for (int k = 0; k < size_; ++k) in_world_.push_back(k);
  record().number = rank;
}

SharedTransport::SharedTransport(std::shared_ptr<WorldMemory> memory, int rank,
                                 const SharedTransport& parent, const std::vector<int>& members)
    : memory_(std::move(memory)), world_(parent.world_), rank_(rank), size_(memory_->size()) {
  may_spin_ = parent.may_spin_;
  for (int k : members) in_world_.push_back(parent.in_world_[static_cast<size_t>(k)]);
}

std::unique_ptr<Transport> SharedTransport::split(int color, int key) {
  struct Wish {
    int32_t color, key, process, file;
  };
  std::vector<Wish> all(static_cast<size_t>(size_));
  auto tell = [&](Wish own) {
    run({.kind = Collective::all_gather,
         .element = Element::i32,
         .count = sizeof(Wish) / sizeof(int32_t),
         .in = &own,
         .out = all.data()});
  };
  tell({color, key, 0, 0});
  std::vector<int> members;
  for (int k = 0; k < size_; ++k)
    if (all[static_cast<size_t>(k)].color == color) members.push_back(k);
  std::ranges::stable_sort(members, {}, [&](int k) { return all[static_cast<size_t>(k)].key; });
  auto own = std::ranges::find(members, rank_);
  int first = members[0];
  std::shared_ptr<WorldMemory> memory;
  if (first == rank_) memory = WorldMemory::make(static_cast<int>(members.size()));
  tell({color, key, getpid(), memory ? memory->file() : -1});
  const Wish& leader = all[static_cast<size_t>(first)];
  if (!memory) memory = WorldMemory::open(leader.process, leader.file);
  run({});  // the first one's file is open until all have opened it
  return std::make_unique<SharedTransport>(std::move(memory),
                                           static_cast<int>(own - members.begin()), *this, members);
}

void SharedTransport::run(const CollectiveCall& call) {
  for (const CallPiece& piece : call.pieces) {
    CollectiveCall one = call;
    one.in = piece.in, one.out = piece.out, one.count = piece.count, one.pieces = {};
    run(one);
  }
  if (!call.pieces.empty()) return;
  std::unique_lock lock = begin_call();
  record().busy.store(1, std::memory_order_relaxed);
  try {
    publish(call);
    exchange(call);
  } catch (const WorkerFailed&) {
    set_idle();
    throw;
  } catch (...) {  // an interrupt, or no memory: the others would wait for this worker
    fail_all(format("{} left {}", name_of_worker(rank_), text_of(mine())));
    set_idle();
    throw;
  }
  set_idle();
}

/// One call at a time, in the process that joined the others.
std::unique_lock<std::mutex> SharedTransport::begin_call() {
  if (fork_generation() != generation_)
    fail(Hint{"start processes with the method 'spawn' of multiprocessing"},
         "workers: this process is a fork of a worker, and cannot call the others");
  std::unique_lock lock(mutex_);
  static thread_local bool is_known = false;
  if (!std::exchange(is_known, true)) ++record_in_world().threads;
  if (world_->has_failed()) fail_with_others();
  return lock;
}

PublishedCall SharedTransport::published(const CollectiveCall& call, uint64_t number) const {
  PublishedCall made{.number = number,
                     .data = data_of(call),
                     .peer = call.peer,
                     .kind = static_cast<uint8_t>(call.kind),
                     .fold = static_cast<uint8_t>(call.fold),
                     .origin = call.origin.value_or(Origin{.ops = 0}),
                     .place = {}};
  std::ranges::copy(call.place.substr(0, sizeof made.place - 1), made.place);
  return made;
}

void SharedTransport::publish(const CollectiveCall& call) {
  ++number_;
  record().calls[number_ % 2] = published(call, number_);
  record().digests[number_ % 2] = digest_of(call);
  is_checked_ = false, given_ = call.given.first(std::min(call.given.size(), kShownValues));
  std::ranges::fill(record().given, 0);
  std::ranges::transform(given_, record().given, &Origin::traced_values);
  show_in_world(mine(), 1);
}

/// Others look for a worker in the world. There a call of a smaller group is shown as such.
void SharedTransport::show_in_world(const PublishedCall& call, uint32_t busy) {
  WorkerRecord& shown = record_in_world();
  bool is_in_group = &shown != &record();
  if (is_in_group) shown.in_group = call;
  shown.is_in_group.store(is_in_group, std::memory_order_relaxed);
  shown.busy.store(is_in_group ? 3 : busy, std::memory_order_relaxed);
}

void SharedTransport::set_idle() {
  record().busy.store(0, std::memory_order_relaxed);
  record_in_world().busy.store(0, std::memory_order_relaxed);
}

std::string SharedTransport::name_of_worker(int rank) const {
  return format("worker {}", in_world_[static_cast<size_t>(rank)]);
}

/// After the first phase of a call: what the others do must be the same.
void SharedTransport::check_others() {
  is_checked_ = true;
  uint64_t digest = record().digests[number_ % 2];
  for (int other = 0; other < size_; ++other) {
    if (memory_->record(other).digests[number_ % 2] == digest) continue;
    const PublishedCall& theirs = memory_->record(other).calls[number_ % 2];
    fail_unless_alike(theirs, rank_ < other, name_of_worker(other), other);
  }
}

/// Whether values that are made by the same ops are made from the same.
static bool are_alike(const Origin& a, const Origin& b) {
  if (!a.ops || !b.ops) return true;  // it is not known
  bool is_one_trace = a.traced_ops == b.traced_ops;
  return a.values == b.values && (!is_one_trace || a.traced_values == b.traced_values);
}

/// Of calls that look the same.
static std::string different_ops(const Origin& own, const Origin& theirs) {
  bool are_numbers = std::max(own.ops, theirs.ops) <= Loc::kMarks;
  if (!are_numbers) return ", which they compute by different ops or from other shapes";
  return format(", number {} and {} of those that the program has asked for",
                std::min(own.ops, theirs.ops), std::max(own.ops, theirs.ops));
}

/// Another worker's call has another digest.
void SharedTransport::fail_unless_alike(const PublishedCall& theirs, bool is_first,
                                        const std::string& other, int rank_here) {
  const PublishedCall& own = mine();
  bool is_same = is_same_call(theirs, own);
  if (is_same && are_alike(own.origin, theirs.origin)) return;
  std::string self = name_of_worker(rank_), call = text_of(own), other_call = text_of(theirs);
  const std::string &first = is_first ? self : other, &second = is_first ? other : self;
  if (is_same)
    fail_all(
        format("{} and {} were given different values{}, but a mesh needs the same tensors and "
               "numbers of the host from all processes, evaluated in the same order: seed what "
               "makes them alike, evaluate clocks and ranks by themselves, or use "
               "tn.distributed.broadcast(x, 0). Found in {}",
               first, second, place_text(line_given_to(rank_here)), call));
  else
    fail_all(
        format("workers disagree: {} calls {}, {} calls {}{}. All workers must evaluate the "
               "same values in the same order: evaluate a value on all before one prints it",
               first, is_first ? call : other_call, second, is_first ? other_call : call,
               call == other_call ? different_ops(own.origin, theirs.origin) : ""));
  fail_with_others();
}

/// The user's line. A place with a mark is one of the plan.
static std::string place_of(const Origin& given) {
  Loc loc{given.loc};
  return to_text(loc.mark() ? place_now(loc) : loc);
}

/// Of the first value that another worker was given differently, if it is of this machine.
std::string SharedTransport::line_given_to(int other) const {
  if (other < 0) return {};
  for (size_t i = 0; i < given_.size(); ++i)
    if (memory_->record(other).given[i] != given_[i].traced_values) return place_of(given_[i]);
  return {};
}

void SharedTransport::exchange(const CollectiveCall& call) {
  int64_t bytes = call.count * static_cast<int64_t>(element_bytes(call.element));
  switch (call.kind) {
    case Collective::barrier:
      return arrive_and_wait();
    case Collective::all_reduce:
      return bytes * (size_ - 1) <= kOneShotBytes ? reduce_small(call, bytes)
                                                  : reduce_large(call, bytes);
    case Collective::all_gather:
      return gather(call, bytes);
    case Collective::broadcast:
      return broadcast(call, bytes);
    case Collective::reduce_scatter:
    case Collective::all_to_all:
      return scatter(call, bytes);
    case Collective::send:
    case Collective::recv:
      return;  // no calls of all workers
  }
}

void SharedTransport::reduce_small(const CollectiveCall& call, int64_t bytes) {
  if (bytes) std::memcpy(my_slot(), call.in, static_cast<size_t>(bytes));
  std::vector<const void*> in = slots();
  arrive_and_wait();
  fold(call.fold, call.element, in, call.out, call.count);
}

/// Pieces pass a pipeline of three stages, and workers wait for each other once for each piece:
/// between two waits a worker copies piece p into its slot, folds its part of piece p - 1, and
/// takes the folded parts of piece p - 2. A slot has a piece and, behind it, a folded part.
void SharedTransport::reduce_large(const CollectiveCall& call, int64_t bytes) {
  auto width = static_cast<int64_t>(element_bytes(call.element));
  int64_t pieces = (bytes + kPieceBytes - 1) / kPieceBytes;
  bool streams = bytes >= kStreamBytes && call.in != call.out;
  auto bytes_of = [&](int64_t piece) { return std::min(kPieceBytes, bytes - piece * kPieceBytes); };
  for (int64_t p = 0; p < pieces + 2; ++p) {
    if (p < pieces)
      std::memcpy(my_slot(), bytes_at(call.in, p * kPieceBytes), static_cast<size_t>(bytes_of(p)));
    if (p >= 1 && p <= pieces) {
      Range own = part_of(bytes_of(p - 1) / width, rank_, size_);
      std::vector<const void*> in = slots(1);
      for (const void*& slot : in) slot = bytes_at(slot, own.begin * width);
      fold(call.fold, call.element, in, slot_of(rank_, 1) + kPieceBytes, own.end - own.begin);
    }
    if (p >= 2) take_folded(call, p - 2, bytes_of(p - 2), streams);
    arrive_and_wait();
  }
  if (streams) end_streaming();
}

/// The parts of a piece that the workers have folded, to where the result is.
void SharedTransport::take_folded(const CollectiveCall& call, int64_t piece, int64_t bytes,
                                  bool streams) {
  auto width = static_cast<int64_t>(element_bytes(call.element));
  for (int k = 0; k < size_; ++k) {
    Range part = part_of(bytes / width, k, size_);
    void* to = bytes_at(call.out, piece * kPieceBytes + part.begin * width);
    const std::byte* from = slot_of(k) + kPieceBytes;
    auto count = static_cast<size_t>((part.end - part.begin) * width);
    streams ? stream_copy(to, from, count) : static_cast<void>(std::memcpy(to, from, count));
  }
}

void SharedTransport::gather(const CollectiveCall& call, int64_t bytes) {
  int64_t at = 0;
  do {
    int64_t piece = std::min(kSlotBytes, bytes - at);
    if (piece) std::memcpy(my_slot(), bytes_at(call.in, at), static_cast<size_t>(piece));
    std::vector<const void*> from = slots();
    arrive_and_wait();
    for (int k = 0; k < size_ && piece; ++k)
      std::memcpy(bytes_at(call.out, k * bytes + at), from[static_cast<size_t>(k)],
                  static_cast<size_t>(piece));
    at += piece;
  } while (at < bytes);
}

void SharedTransport::broadcast(const CollectiveCall& call, int64_t bytes) {
  int64_t at = 0;
  do {
    auto piece = static_cast<size_t>(std::min(kSlotBytes, bytes - at));
    if (piece && rank_ == call.peer) std::memcpy(my_slot(), bytes_at(call.in, at), piece);
    const std::byte* from = slot_of(call.peer);
    arrive_and_wait();
    if (piece && (rank_ != call.peer || call.in != call.out))
      std::memcpy(bytes_at(call.out, at), from, piece);
    at += static_cast<int64_t>(piece);
  } while (at < bytes);
}

/// reduce_scatter and all_to_all: a slot has a part for each worker.
void SharedTransport::scatter(const CollectiveCall& call, int64_t bytes) {
  auto width = static_cast<int64_t>(element_bytes(call.element));
  int64_t room = kSlotBytes / size_ / 64 * 64, at = 0;
  do {
    int64_t piece = std::min(room, bytes - at);
    for (int k = 0; k < size_ && piece; ++k)
      std::memcpy(my_slot() + k * room, bytes_at(call.in, k * bytes + at),
                  static_cast<size_t>(piece));
    std::vector<const void*> from = slots();
    arrive_and_wait();
    for (const void*& slot : from) slot = bytes_at(slot, rank_ * room);
    if (call.kind == Collective::reduce_scatter)
      fold(call.fold, call.element, from, bytes_at(call.out, at), piece / width);
    else
      for (int k = 0; k < size_ && piece; ++k)
        std::memcpy(bytes_at(call.out, k * bytes + at), from[static_cast<size_t>(k)],
                    static_cast<size_t>(piece));
    at += piece;
  } while (at < bytes);
}

std::vector<const void*> SharedTransport::slots(int before) {
  std::vector<const void*> all(static_cast<size_t>(size_));
  for (int k = 0; k < size_; ++k) all[static_cast<size_t>(k)] = slot_of(k, before);
  return all;
}

void SharedTransport::arrive_and_wait() {
  ++phase_;
  record().arrived.exchange(phase_);  // before it looks for sleepers
  if (record().sleepers.load() > 0) wake(record().arrived);
  for (int other = 0; other < size_; ++other) {
    if (other == rank_) continue;
    WorkerRecord& theirs = memory_->record(other);
    wait(other, theirs.arrived, theirs.sleepers,
         [&](uint32_t now) { return static_cast<int32_t>(now - phase_) >= 0; });
  }
  if (!is_checked_) check_others();
}

void SharedTransport::wait(int other, std::atomic<uint32_t>& word, std::atomic<uint32_t>& sleepers,
                           FunctionRef<bool(uint32_t)> reached) {
  if (reached(word.load(std::memory_order_acquire))) return;
  WaitScope waiting;
  Clock::time_point began = Clock::now();
  while (may_spin_ && Clock::now() - began < kSpin)
    for (int i = 0; i < 32; ++i, pause())
      if (reached(word.load(std::memory_order_acquire))) return;
  ShownWait shown(*world_, in_world_[static_cast<size_t>(rank_)],
                  in_world_[static_cast<size_t>(other)]);
  sleepers.fetch_add(1);
  auto woken = [&] {
    bool has_ended = world_->record(in_world_[static_cast<size_t>(other)]).ended.load();
    uint32_t seen = word.load();
    if (reached(seen) || world_->has_failed()) return true;
    if (has_ended)
      fail_all(format("{} has ended, but {} waits for it{}", name_of_worker(other),
                      name_of_worker(rank_), whereabouts(record())));
    sleep_until_change(word, seen, kSliceMilliseconds);
    return false;
  };
  try {
    while (!woken()) {
      stop_if_asked();
      if (shown.is_circular()) fail_all(shown.text());
      if (Clock::now() - began > collective_timeout()) fail_late();
    }
  } catch (...) {
    sleepers.fetch_sub(1);
    throw;
  }
  sleepers.fetch_sub(1);
  if (!reached(word.load(std::memory_order_acquire))) fail_with_others();
}

/// Time is up. The reason says where every worker is.
void SharedTransport::fail_late() { fail_all(late_text()); }

std::string SharedTransport::late_text() const {
  std::string text =
      format("no progress for {} s{}",
             std::chrono::duration_cast<std::chrono::seconds>(collective_timeout()).count(),
             whereabouts(record()));
  for (int other = 0; other < size_; ++other) {
    std::string where = whereabouts(memory_->record(other));
    text += format("; {} is{}", name_of_worker(other),
                   where.empty() ? " before its first call" : where);
  }
  return text;
}

void SharedTransport::fail_with_others() { throw WorkerFailed(world_->reason()); }

void SharedTransport::with_message(const CollectiveCall& call, FunctionRef<void()> work) {
  std::unique_lock lock = begin_call();
  record().message = published(call, ++messages_);
  record().busy = 2;
  show_in_world(record().message, 2);
  try {
    work();
  } catch (const WorkerFailed&) {
    set_idle();
    throw;
  } catch (...) {
    fail_all(format("{} left {}", name_of_worker(rank_), text_of(record().message)));
    set_idle();
    throw;
  }
  set_idle();
}

void SharedTransport::send_to(int peer, const CollectiveCall& call) {
  Channel& to = memory_->channel(rank_, peer);
  with_message(call, [&] {
    pass(call, peer, to, true, [&](std::byte* room, int64_t at, size_t piece) {
      std::memcpy(room, bytes_at(call.in, at), piece);
    });
  });
}

void SharedTransport::receive_from(int peer, const CollectiveCall& call) {
  Channel& from = memory_->channel(peer, rank_);
  with_message(call, [&] {
    pass(call, peer, from, false, [&](std::byte* room, int64_t at, size_t piece) {
      std::memcpy(bytes_at(call.out, at), room, piece);
    });
  });
}

/// The pieces of a message, through a room for two of them.
void SharedTransport::pass(const CollectiveCall& call, int peer, Channel& channel, bool sends,
                           FunctionRef<void(std::byte*, int64_t, size_t)> move) {
  int64_t bytes = call.count * static_cast<int64_t>(element_bytes(call.element)), at = 0;
  std::atomic<uint32_t>& own = sends ? channel.written : channel.read;
  std::atomic<uint32_t>& theirs = sends ? channel.read : channel.written;
  do {
    uint32_t done = own.load();
    // The sender may be two pieces ahead of the receiver, who needs one to be written.
    wait(peer, theirs, channel.sleepers, [&](uint32_t now) {
      return sends ? done - now < 2 : static_cast<int32_t>(now - done) > 0;
    });
    DataKind& about = channel.about[done % 2];
    if (sends) about = data_of(call);
    if (!sends && about != data_of(call)) fail_different_message(call, about, name_of_worker(peer));
    auto piece = static_cast<size_t>(std::min(kChannelBytes, bytes - at));
    if (piece) move(channel.room[done % 2], at, piece);
    own.exchange(done + 1);
    if (channel.sleepers.load() > 0) wake(own);
    at += static_cast<int64_t>(piece);
  } while (at < bytes);
}

void SharedTransport::fail_different_message(const CollectiveCall& call, const DataKind& sent,
                                             const std::string& peer) {
  std::string there = text_of(sent), here = text_of(data_of(call));
  fail_all(format(
      "workers disagree: {} sends {}, {} expects {}{}{}", peer, there, name_of_worker(rank_), here,
      there == here ? ", which it would compute in another way" : "", place_text(call.place)));
  fail_with_others();
}

}  // namespace tn::workers
