// How workers of several machines notice that others have failed. A note of a kilobyte says that a
// machine is alive and what its workers do, that the program has failed, or that a worker has left.
#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/environment_number.h"
#include "base/error.h"
#include "workers/mpi_link.h"

namespace tn::workers {
namespace {

constexpr int kNoteTag = 0;
constexpr auto kAttendEvery = std::chrono::milliseconds(4);
enum NoteKind : uint8_t { kHello, kAlive, kFailed, kGoodbye };

/// Without a sign of life for so long, a worker is taken to be dead.
std::chrono::seconds patience() {
  static const int64_t seconds = environment_number("TENON_HEARTBEAT_TIMEOUT", 1, 10);
  return std::chrono::seconds(seconds);
}

}  // namespace

void MpiLink::watch(std::shared_ptr<WorldMemory> memory, std::vector<Machine> machines, int own) {
  memory_ = std::move(memory), machines_ = std::move(machines), own_ = own;
  machine_of_.resize(static_cast<size_t>(size_));
  for (size_t m = 0; m < machines_.size(); ++m)
    for (int worker : machines_[m].workers)
      machine_of_[static_cast<size_t>(worker)] = static_cast<int>(m);
  left_made_ = std::make_unique<std::atomic<bool>[]>(static_cast<size_t>(size_));
  left_ = std::span(left_made_.get(), static_cast<size_t>(size_));
  signs_.resize(machines_.size());
  heard_.assign(machines_.size(), Clock::now());
  neighbours_.resize(static_cast<size_t>(memory_->size()));
  WorkerRecord& record = memory_->record(own_place());
  record.process = process_;
  is_watching_.store(true, std::memory_order_release);
}

std::string MpiLink::name_of(int worker) const {
  const Machine& machine = machines_[static_cast<size_t>(machine_of_[static_cast<size_t>(worker)])];
  return format("worker {} on host {}", worker, machine.name);
}

std::string MpiLink::last_signs() {
  std::lock_guard lock(mutex_);
  std::string text;
  for (const std::string& sign : signs_) text += sign;
  return text;
}

/// Of what is due every few milliseconds. The caller drives.
void MpiLink::attend(Clock::time_point now) {
  if (now - attended_ < kAttendEvery) return;
  attended_ = now;
  if (!is_watching_.load(std::memory_order_acquire)) return;
  // A process that was stopped has no right to blame others for the time it missed.
  bool was_stopped = last_look_ != Clock::time_point() && now - last_look_ > patience() / 2;
  if (was_stopped) {
    std::ranges::fill(heard_, now);
    for (Neighbour& n : neighbours_) n.moved = now;
  }
  if (!is_broken_) receive_notes(), reap_notes();
  memory_->record(own_place()).beats.fetch_add(1, std::memory_order_relaxed);
  // A connection is made at the first message. MPI ends the process if it cannot be made, so it
  // must exist before a failure is reported.
  if (last_look_ == Clock::time_point()) send(kHello, "", contacts());
  look_at_neighbours(now);
  if (!is_broken_) look_at_machines(now);
  report_failure();
  if (is_leaving_ && !has_said_goodbye_ && !memory_->has_failed()) {
    has_said_goodbye_ = true;
    std::vector<int> others;
    for (int worker = 0; worker < size_; ++worker)
      if (machine_of_[static_cast<size_t>(worker)] != own_) others.push_back(worker);
    send(kGoodbye, "", others);
  }
  last_look_ = now;
}

void MpiLink::receive_notes() {
  for (;;) {
    if (!expected_) {
      expected_ = std::make_unique<NoteSent>();
      mpi_->irecv(&expected_->note, sizeof(Note), mpi_->byte, mpi_->any_source, kNoteTag, comm_,
                  &expected_->request);
    }
    MpiLibrary::Status status;
    int flag = 0;
    if (mpi_->test(&expected_->request, &flag, &status) || !flag) return;
    read(expected_->note);
    expected_.reset();
  }
}

void MpiLink::read(const Note& note) {
  if (note.from < 0 || note.from >= size_) return;
  int machine = machine_of_[static_cast<size_t>(note.from)];
  heard_[static_cast<size_t>(machine)] = Clock::now();
  std::string text(note.text, strnlen(note.text, sizeof note.text));
  if (note.kind == kGoodbye) left_[static_cast<size_t>(note.from)] = true;
  if (note.kind == kFailed) memory_->fail_all(text);
  if (note.kind != kAlive) return;
  std::lock_guard lock(mutex_);
  signs_[static_cast<size_t>(machine)] = std::move(text);
}

void MpiLink::send(uint8_t kind, const std::string& text, const std::vector<int>& to) {
  for (int worker : to) {
    auto waiting = std::ranges::count(sent_, worker, [](const auto& s) { return s->to; });
    if (kind == kAlive && waiting > 2) continue;  // nobody reads them there
    auto made = std::make_unique<NoteSent>();
    made->note = {rank_, kind, {}};
    std::memcpy(made->note.text, text.data(), std::min(text.size(), sizeof made->note.text - 1));
    made->to = worker;
    if (!mpi_->isend(&made->note, sizeof(Note), mpi_->byte, worker, kNoteTag, comm_,
                     &made->request))
      sent_.push_back(std::move(made));
  }
}

void MpiLink::reap_notes() {
  std::erase_if(sent_, [&](const auto& sent) {
    MpiLibrary::Status status;
    int flag = 0;
    return mpi_->test(&sent->request, &flag, &status) || flag;
  });
}

/// The processes of this machine: those that have ended, and those that have stopped.
void MpiLink::look_at_neighbours(Clock::time_point now) {
  for (int k = 0; k < memory_->size(); ++k) {
    WorkerRecord& record = memory_->record(k);
    Neighbour& n = neighbours_[static_cast<size_t>(k)];
    int process = record.process.load();
    if (k == own_place() || process == 0 || record.ended.load()) continue;
    if (n.file < 0) {
      n.file = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
      if (n.file >= 0) fcntl(n.file, F_SETFD, FD_CLOEXEC);
      n.moved = now;
    }
    pollfd end = {n.file, POLLIN, 0};
    bool has_ended = n.file < 0 || ::poll(&end, 1, 0) > 0;
    uint32_t beats = record.beats.load(std::memory_order_relaxed);
    if (beats != n.beats) n.beats = beats, n.moved = now;
    std::string who = name_of(machines_[static_cast<size_t>(own_)].workers[static_cast<size_t>(k)]);
    if (has_ended && !record.ended.load())
      memory_->fail_all(format("{} was killed or has failed{}", who, whereabouts(record)));
    else if (now - n.moved > patience())
      memory_->fail_all(format("{} has given no sign of life for {} s{}", who, patience().count(),
                               whereabouts(record)));
  }
}

/// The first worker of each machine speaks for it.
void MpiLink::look_at_machines(Clock::time_point now) {
  std::vector<int> others;
  for (size_t m = 0; m < machines_.size(); ++m) {
    if (static_cast<int>(m) == own_) continue;
    const std::vector<int>& there = machines_[m].workers;
    others.push_back(there[0]);
    bool have_left = std::ranges::all_of(there, [&](int worker) { return has_left(worker); });
    if (own_place() == 0 && !have_left && now - heard_[m] > patience())
      memory_->fail_all(format("{} has given no sign of life for {} s{}", name_of(there[0]),
                               patience().count(),
                               signs_[m].empty() ? " after its start" : signs_[m]));
  }
  if (own_place() != 0 || now - last_beat_ < std::chrono::seconds(1)) return;
  last_beat_ = now;
  std::string text;
  for (size_t k = 0; k < machines_[static_cast<size_t>(own_)].workers.size(); ++k) {
    std::string where = whereabouts(memory_->record(static_cast<int>(k)));
    text += format("; {} is{}", name_of(machines_[static_cast<size_t>(own_)].workers[k]),
                   where.empty() ? " before its first call" : where);
  }
  send(kAlive, text, others);
}

/// One worker of every other machine, and its first one.
std::vector<int> MpiLink::contacts() const {
  std::vector<int> found;
  for (size_t m = 0; m < machines_.size(); ++m) {
    if (static_cast<int>(m) == own_) continue;
    const std::vector<int>& there = machines_[m].workers;
    found.push_back(there[0]);
    int counterpart = there[static_cast<size_t>(own_place()) % there.size()];
    if (counterpart != there[0]) found.push_back(counterpart);
  }
  return found;
}

void MpiLink::report_failure() {
  if (has_reported_ || !memory_->has_failed()) return;
  has_reported_ = true;
  send(kFailed, memory_->reason(), contacts());
}

}  // namespace tn::workers
