#pragma once
// Recordings of events, for timelines and profiles.
#include <unordered_map>

#include "base/events.h"

namespace tn {

std::string_view name_of(EventKind kind);

/// Adds to events what people want to read: names that are called (matmul, not dot), whether runs
/// and steps are those of compiled code, and for EventKind::ops their number as the value.
class EventCompletion {
 public:
  EventCompletion();  // looks names up, for which ops are recorded: not while events are collected
  /// In the order in which they were reported.
  Event complete(Event event);

 private:
  std::unordered_map<uint32_t, bool> runs_compiled_;  // by thread, of its latest run
};

/// How much memory is in use when a recording begins at `time`: its first event, if there are
/// others.
Event memory_at_start(uint64_t time);

/// Records everything from construction to stop(). Bounded: after `most` events they are only
/// counted.
class EventRecorder : public Watcher {
 public:
  explicit EventRecorder(size_t most);
  ~EventRecorder() override { stop(); }

  void stop();
  void take(std::span<const Event> events) override;

  /// To be read when it is stopped.
  std::vector<Event> events;
  uint64_t missing = 0;
  const uint64_t began = event_time();
  uint64_t nanoseconds = 0;  // from there to stop()

 private:
  const Event memory_ = memory_at_start(began);
  const size_t most_;
  bool stopped_ = false;
  EventCompletion completion_;
};

/// Records the steps of plans that this thread runs, from construction to stop(). What runs inside
/// of a step counts as the step.
class StepRecorder : public Watcher {
 public:
  StepRecorder();
  ~StepRecorder() override { stop(); }

  void stop();
  void take(std::span<const Event> events) override;

  std::vector<Event> steps;  // to be read when it is stopped

 private:
  const uint32_t thread_ = event_thread();
  bool stopped_ = false;
};

}  // namespace tn
