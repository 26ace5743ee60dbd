#include "observe/event_recorder.h"

#include <utility>

#include "observe/op_events.h"
#include "runtime/memory_use.h"

namespace tn {

std::string_view name_of(EventKind kind) {
  constexpr std::string_view kNames[] = {
      "record",         "ops",   "run",    "step",       "compile_starting", "compile_complete",
      "compile_failed", "share", "memory", "worker_ops", "worker_run",       "collective"};
  return kNames[static_cast<size_t>(kind)];
}

namespace {

/// A list of names that did not fit ends with a whole one.
std::string whole_names(std::string_view text) {
  constexpr std::string_view kMore = " ...";
  std::string names = called_names(text);
  if (text.size() < sizeof(Event::text) && names.size() <= sizeof(Event::text)) return names;
  size_t most = sizeof(Event::text) - kMore.size();
  size_t comma = names.rfind(", ", most), arrow = names.rfind(" -> ", most);
  size_t end = comma == names.npos ? arrow : comma;
  if (end == names.npos) return names;
  return names.substr(0, end) += kMore;
}

}  // namespace

EventCompletion::EventCompletion() { called_names(""); }

Event EventCompletion::complete(Event event) {
  switch (event.kind) {
    case EventKind::ops:
    case EventKind::worker_ops:
      runs_compiled_[event.thread] = event.compiled;
      event.value = event.ops().ops.size();
      break;
    case EventKind::run:
    case EventKind::step:
      event.compiled = runs_compiled_[event.thread];
      [[fallthrough]];
    case EventKind::record:
    case EventKind::compile_starting:
    case EventKind::compile_complete:
      event.set_name(whole_names(event.name()));
      break;
    default:
      break;
  }
  return event;
}

Event memory_at_start(uint64_t time) {
  Event memory(EventKind::memory, "", time);
  memory.value = active_memory();
  return memory;
}

EventRecorder::EventRecorder(size_t most) : most_(most) {
  events.reserve(most);  // threads that wait for the collector do not wait for copies
  start();
}

void EventRecorder::stop() {
  if (std::exchange(stopped_, true)) return;
  nanoseconds = event_time() - began;
  Watcher::stop();
}

void EventRecorder::take(std::span<const Event> batch) {
  if (events.empty() && !batch.empty()) events.push_back(memory_);
  for (const Event& event : batch) {
    if (events.size() < most_)
      events.push_back(completion_.complete(event));
    else
      ++missing;
  }
}

StepRecorder::StepRecorder() : Watcher({EventKind::step}) { start(); }

void StepRecorder::stop() {
  if (std::exchange(stopped_, true)) return;
  Watcher::stop();
  for (Event& step : steps) step.set_name(whole_names(step.name()));
}

void StepRecorder::take(std::span<const Event> batch) {
  for (const Event& event : batch) {
    if (!wants(event) || event.thread != thread_) continue;
    while (!steps.empty() && steps.back().began > event.began) steps.pop_back();
    steps.push_back(event);
  }
}

}  // namespace tn
