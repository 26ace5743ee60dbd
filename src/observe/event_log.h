#pragma once
// The event log: everything that happens, as lines like those of the instruction log.
//
//     0.100s | #0010 | RUN        | WORKER | Plan     | value=2 t=0.100213000 took=... name=dot
//
// Lines are made and written by the thread that collects events, as it goes: memory is bounded, the
// program does not wait for the end, and a process that is killed leaves what it did.
#include <string>
#include <unordered_map>

#include "observe/event_recorder.h"

namespace tn {

class EventLog : public Watcher {
 public:
  /// Writes to `file`, which becomes its own. After `most` events they are only counted.
  EventLog(int file, size_t most);
  ~EventLog() override;
  void take(std::span<const Event> events) override;

  /// Adds the places of calls and what was measured, and closes the file. Python's lock may be
  /// held: places are asked of it here, not while events are collected.
  void stop();

  /// To be read when it is stopped.
  uint64_t written() const { return written_; }
  uint64_t missing() const { return missing_; }
  int error() const { return error_; }  // of the system, at the first write that failed

 private:
  void add_line(const Event& event);
  void add_collective(const Event& event);
  void add_end();
  void write();

  const size_t most_;
  const int process_;  // a child of fork has a copy of this, and the same file
  const uint64_t began_ = event_time();
  const Event memory_ = memory_at_start(began_);
  int file_, error_ = 0;
  uint64_t written_ = 0, missing_ = 0;
  std::string text_;
  std::unordered_map<uint64_t, size_t> places_;  // by the bits of their Loc: their number
  EventCompletion completion_;
};

}  // namespace tn
