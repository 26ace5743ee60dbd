#include "workers/machines_transport.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "base/interrupt.h"
#include "tenon/distributed.h"
#include "workers/worker_watch.h"

namespace tn::workers {
namespace {

constexpr int kFirstTag = 4;  // lower ones are for notes and for the start
std::atomic<int> next_tag = kFirstTag;

using Clock = std::chrono::steady_clock;

std::byte* at_byte(void* p, int64_t offset) { return static_cast<std::byte*>(p) + offset; }
const std::byte* at_byte(const void* p, int64_t offset) {
  return static_cast<const std::byte*>(p) + offset;
}

}  // namespace

MachinesTransport::MachinesTransport(MpiLink& link, std::shared_ptr<WorldMemory> memory, int place,
                                     Members members)
    : SharedTransport(std::move(memory), place), link_(link), members_(std::move(members)) {
  find_seats();
  record().number = rank();
}

MachinesTransport::MachinesTransport(MpiLink& link, std::shared_ptr<WorldMemory> memory, int place,
                                     Members members, const MachinesTransport& parent,
                                     const std::vector<int>& places)
    : SharedTransport(std::move(memory), place, parent, places),
      link_(link),
      members_(std::move(members)) {
  find_seats();
}

void MachinesTransport::find_seats() {
  seats_.resize(members_.in_mpi.size());
  roots_.resize(members_.machines.size());
  lanes_ = size();
  for (int m = 0; m < machines(); ++m) {
    const std::vector<int>& ranks = ranks_on(m);
    lanes_ = std::min(lanes_, static_cast<int>(ranks.size()));
    for (size_t k = 0; k < ranks.size(); ++k)
      seats_[static_cast<size_t>(ranks[k])] = {m, static_cast<int>(k)};
  }
  find_roots(0, size());
  for (int m = 0; m < machines(); ++m) most_roots_ = std::max(most_roots_, roots_on(m));
  sent_.resize(members_.machines.size()), got_.resize(members_.machines.size());
}

std::byte* MachinesTransport::Room::of(int64_t bytes) {
  if (bytes > bytes_) {
    made_ = std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(bytes));
    bytes_ = bytes;
  }
  return made_.get();
}

void MachinesTransport::find_roots(int first, int last) {
  int machine = seats_[static_cast<size_t>(first)].machine;
  bool is_root = true;
  for (int r = first; r < last; ++r) is_root &= seats_[static_cast<size_t>(r)].machine == machine;
  if (is_root) return roots_[static_cast<size_t>(machine)].push_back({first, last});
  int middle = first + static_cast<int>(std::bit_floor(static_cast<unsigned>(last - first - 1)));
  find_roots(first, middle);
  find_roots(middle, last);
}

int MachinesTransport::counterpart(int machine, int place) const {
  const std::vector<int>& ranks = ranks_on(machine);
  return ranks[static_cast<size_t>(place) % ranks.size()];
}

// Between machines --------------------------------------------------------------------------------

Transfer MachinesTransport::sending(int rank, const void* data, int64_t bytes) const {
  int peer = members_.in_mpi[static_cast<size_t>(rank)];
  return {true, peer, members_.tag, const_cast<void*>(data), bytes};
}

Transfer MachinesTransport::receiving(int rank, void* data, int64_t bytes) const {
  return {false, members_.in_mpi[static_cast<size_t>(rank)], members_.tag, data, bytes};
}

void MachinesTransport::transfer(const std::vector<Transfer>& transfers) {
  WaitScope waiting;
  Clock::time_point began = Clock::now();
  auto check = [&] {
    stop_if_asked();
    if (world_->has_failed()) fail_with_others();
    Clock::duration waited = Clock::now() - began;
    if (waited > collective_timeout()) fail_late();
    for (const Transfer& t : transfers)
      if (link_.has_left(t.peer) && waited > std::chrono::milliseconds(300))
        fail_all(format("{} has ended, but {} waits for it{}", link_.name_of(t.peer),
                        name_of_worker(rank_), whereabouts(record())));
    if (world_->has_failed()) fail_with_others();
  };
  try {
    link_.run(transfers, check);
  } catch (const WorkerFailed& error) {
    fail_all(format("{}: MPI: {}", name_of_worker(rank_), error.what()));  // the first reason stays
    fail_with_others();
  }
}

Transfer MachinesTransport::sending_first(int rank, std::byte* message, int64_t bytes) const {
  const uint64_t& digest = record().digests[number_ % 2];
  std::memcpy(message, &digest, sizeof digest);
  return sending(rank, message, kHeadBytes + bytes);
}

Transfer MachinesTransport::receiving_first(int machine) {
  constexpr int64_t kMost = kHeadBytes + kFirstBytes;
  int peer = ranks_on(machine)[static_cast<size_t>(rank_)];
  return receiving(peer, got_[static_cast<size_t>(machine)].of(kMost), kMost);
}

/// Digests differ for both sides, so both send their calls.
void MachinesTransport::compare_calls() {
  const uint64_t own = record().digests[number_ % 2];
  std::vector<int> different;  // machines
  for (int m = 0; m < machines(); ++m)
    if (m != members_.own && std::memcmp(got_[static_cast<size_t>(m)].of(0), &own, sizeof own))
      different.push_back(m);
  if (different.empty()) return;
  std::vector<PublishedCall> theirs(different.size());
  std::vector<Transfer> transfers;
  for (size_t i = 0; i < different.size(); ++i) {
    int peer = ranks_on(different[i])[static_cast<size_t>(rank_)];
    transfers.push_back(receiving(peer, &theirs[i], sizeof theirs[i]));
    transfers.push_back(sending(peer, &mine(), sizeof mine()));
  }
  transfer(transfers);
  for (size_t i = 0; i < different.size(); ++i) {
    theirs[i].place[sizeof theirs[i].place - 1] = 0;
    int other = ranks_on(different[i])[static_cast<size_t>(rank_)];
    fail_unless_alike(theirs[i], rank() < other, name_of_rank(other), -1);
  }
}

void MachinesTransport::meet(int64_t bytes) {
  std::byte* message = sent_[static_cast<size_t>(members_.own)].of(kHeadBytes + bytes);
  std::vector<Transfer> transfers;
  transfers.reserve(2 * roots_.size());
  for (int m = 0; m < machines(); ++m) {
    if (m == members_.own) continue;
    transfers.push_back(receiving_first(m));
    transfers.push_back(sending_first(ranks_on(m)[0], message, bytes));
  }
  transfer(transfers);
  compare_calls();
}

/// After it every worker knows that all make this call.
void MachinesTransport::meet_and_arrive() {
  if (rank_ == 0) meet(0);
  arrive_and_wait();
}

// Collectives -------------------------------------------------------------------------------------

void MachinesTransport::exchange(const CollectiveCall& call) {
  if (machines() == 1) return SharedTransport::exchange(call);
  auto width = static_cast<int64_t>(element_bytes(call.element));
  int64_t bytes = call.count * width;
  switch (call.kind) {
    case Collective::all_reduce:
      return most_roots_ * call.count * std::max<int64_t>(width, 4) <= kFirstBytes
                 ? reduce_in_one(call)
                 : reduce_in_slices(call);
    case Collective::all_gather:
      return gather_all(call, bytes);
    case Collective::reduce_scatter:
      return scatter_sums(call, bytes);
    case Collective::all_to_all:
      return exchange_all(call, bytes);
    case Collective::broadcast:
      return broadcast_all(call, bytes);
    default:
      arrive_and_wait();
      return meet_and_arrive();
  }
}

/// `bytes` of every worker land on one worker of each machine, where all can read them.
void MachinesTransport::gather_all(const CollectiveCall& call, int64_t bytes) {
  meet_and_arrive();
  // On this machine, the operand of rank r is in the slot of place k, where it is number n.
  std::vector<std::pair<int, int64_t>> landed(seats_.size());
  std::vector<int64_t> counts(static_cast<size_t>(size_), 0);
  int64_t most = 0;  // in a slot, of all machines: pieces have one size everywhere
  for (int m = 0; m < machines(); ++m) {
    std::vector<int64_t> on(ranks_on(m).size(), 0);
    for (Seat seat : seats_)
      most = std::max(most, ++on[static_cast<size_t>(seat.place) % on.size()]);
  }
  for (size_t r = 0; r < seats_.size(); ++r) {
    int place = seats_[r].place % size_;
    landed[r] = {place, counts[static_cast<size_t>(place)]++};
  }
  int64_t piece = kSlotBytes / most / 64 * 64, at = 0;
  do {
    int64_t now = std::min(piece, bytes - at);
    std::vector<Transfer> transfers;
    for (size_t r = 0; r < seats_.size() && now; ++r) {
      if (landed[r].first != rank_) continue;
      std::byte* room = my_slot() + landed[r].second * piece;
      if (static_cast<int>(r) == rank())
        std::memcpy(room, at_byte(call.in, at), static_cast<size_t>(now));
      else
        transfers.push_back(receiving(static_cast<int>(r), room, now));
    }
    for (int m = 0; m < machines() && now; ++m)
      if (m != members_.own)
        transfers.push_back(sending(counterpart(m, rank_), at_byte(call.in, at), now));
    transfer(transfers);
    std::vector<const void*> from = slots();
    arrive_and_wait();
    for (size_t r = 0; r < seats_.size() && now; ++r)
      std::memcpy(at_byte(call.out, static_cast<int64_t>(r) * bytes + at),
                  at_byte(from[static_cast<size_t>(landed[r].first)], landed[r].second * piece),
                  static_cast<size_t>(now));
    at += now;
  } while (at < bytes);
}

void MachinesTransport::exchange_all(const CollectiveCall& call, int64_t bytes) {
  meet_and_arrive();
  std::vector<Transfer> transfers;
  for (int r = 0; r < size() && bytes; ++r) {
    if (seats_[static_cast<size_t>(r)].machine == members_.own) continue;
    transfers.push_back(receiving(r, at_byte(call.out, r * bytes), bytes));
    transfers.push_back(sending(r, at_byte(call.in, r * bytes), bytes));
  }
  transfer(transfers);
  int64_t room = kSlotBytes / size_ / 64 * 64, at = 0;
  do {  // those of this machine
    auto piece = static_cast<size_t>(std::min(room, bytes - at));
    for (int k = 0; k < size_ && piece; ++k)
      std::memcpy(my_slot() + k * room,
                  at_byte(call.in, ranks_here()[static_cast<size_t>(k)] * bytes + at), piece);
    std::vector<const void*> from = slots();
    arrive_and_wait();
    for (int k = 0; k < size_ && piece; ++k)
      std::memcpy(at_byte(call.out, ranks_here()[static_cast<size_t>(k)] * bytes + at),
                  at_byte(from[static_cast<size_t>(k)], rank_ * room), piece);
    at += static_cast<int64_t>(piece);
  } while (at < bytes);
}

void MachinesTransport::broadcast_all(const CollectiveCall& call, int64_t bytes) {
  meet_and_arrive();
  Seat root = seats_[static_cast<size_t>(call.peer)];
  CollectiveCall here = call;
  here.peer = root.machine == members_.own ? root.place : root.place % size_;
  std::vector<Transfer> transfers;
  if (rank() == call.peer) {
    for (int m = 0; m < machines() && bytes; ++m)
      if (m != members_.own)
        transfers.push_back(sending(counterpart(m, root.place), call.in, bytes));
  } else if (here.peer == rank_ && root.machine != members_.own) {
    if (bytes) transfers.push_back(receiving(call.peer, call.out, bytes));
    here.in = call.out;
  }
  transfer(transfers);
  broadcast(here, bytes);
}

// Messages, groups, failures ----------------------------------------------------------------------

void MachinesTransport::send(const CollectiveCall& call) {
  Seat seat = seats_[static_cast<size_t>(call.peer)];
  if (seat.machine == members_.own) return send_to(seat.place, call);
  with_message(call, [&] {
    PublishedCall about = published(call, messages_);
    int64_t bytes = call.count * static_cast<int64_t>(element_bytes(call.element));
    std::vector<Transfer> transfers = {sending(call.peer, &about, sizeof about)};
    if (bytes) transfers.push_back(sending(call.peer, call.in, bytes));
    for (Transfer& t : transfers) ++t.tag;
    transfer(transfers);
  });
}

void MachinesTransport::receive(const CollectiveCall& call) {
  Seat seat = seats_[static_cast<size_t>(call.peer)];
  if (seat.machine == members_.own) return receive_from(seat.place, call);
  with_message(call, [&] {
    PublishedCall about;
    Transfer first = receiving(call.peer, &about, sizeof about);
    ++first.tag;
    transfer({first});
    if (about.data != data_of(call))
      fail_different_message(call, about.data, name_of_rank(call.peer));
    int64_t bytes = call.count * static_cast<int64_t>(element_bytes(call.element));
    Transfer second = receiving(call.peer, call.out, bytes);
    ++second.tag;
    if (bytes) transfer({second});
  });
}

std::unique_ptr<Transport> MachinesTransport::split(int color, int key) {
  struct Wish {
    int32_t color, key, process, file, tag;
  };
  std::vector<Wish> all(static_cast<size_t>(size()));
  auto tell = [&](Wish own) {
    run({.kind = Collective::all_gather,
         .element = Element::i32,
         .count = sizeof(Wish) / sizeof(int32_t),
         .in = &own,
         .out = all.data()});
  };
  tell({color, key, 0, 0, next_tag.load()});
  Members part;
  for (const Wish& wish : all) part.tag = std::max(part.tag, wish.tag);
  next_tag = part.tag + 2;
  std::vector<int> chosen, places;  // by rank here; those of this machine by place
  for (int r = 0; r < size(); ++r)
    if (all[static_cast<size_t>(r)].color == color) chosen.push_back(r);
  std::ranges::stable_sort(chosen, {}, [&](int r) { return all[static_cast<size_t>(r)].key; });
  for (int m = 0; m < machines(); ++m) {
    Machine machine{members_.machines[static_cast<size_t>(m)].name, {}};
    for (size_t k = 0; k < chosen.size(); ++k)
      if (seats_[static_cast<size_t>(chosen[k])].machine == m)
        machine.workers.push_back(static_cast<int>(k));
    if (m == members_.own) part.own = static_cast<int>(part.machines.size());
    if (!machine.workers.empty()) part.machines.push_back(std::move(machine));
  }
  int place = 0, first = -1;
  for (int r : chosen) {
    part.in_mpi.push_back(members_.in_mpi[static_cast<size_t>(r)]);
    Seat seat = seats_[static_cast<size_t>(r)];
    if (seat.machine != members_.own) continue;
    if (first < 0) first = r;
    if (r == rank()) place = static_cast<int>(places.size());
    places.push_back(seat.place);
  }
  std::shared_ptr<WorldMemory> memory;
  if (first == rank()) memory = WorldMemory::make(static_cast<int>(places.size()));
  tell({color, key, getpid(), memory ? memory->file() : -1, 0});
  const Wish& leader = all[static_cast<size_t>(first)];
  if (!memory) memory = WorldMemory::open(leader.process, leader.file);
  run({});  // the first one's file is open until all have opened it
  return std::make_unique<MachinesTransport>(link_, std::move(memory), place, std::move(part),
                                             *this, places);
}

void MachinesTransport::fail_late() {
  std::string text = late_text();
  fail_all(text + link_.last_signs());
}

std::string MachinesTransport::name_of_rank(int rank) const {
  return link_.name_of(members_.in_mpi[static_cast<size_t>(rank)]);
}

std::string MachinesTransport::name_of_worker(int place) const {
  return name_of_rank(ranks_here()[static_cast<size_t>(place)]);
}

}  // namespace tn::workers
