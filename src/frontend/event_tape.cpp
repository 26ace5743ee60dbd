#include "frontend/event_tape.h"

#include <utility>

#include "frontend/op_events.h"

namespace tn {

std::string_view name_of(EventKind kind) {
  constexpr std::string_view kNames[] = {
      "record",         "ops",   "run",   "step", "compile_starting", "compile_complete",
      "compile_failed", "share", "memory"};
  return kNames[static_cast<size_t>(kind)];
}

EventCompletion::EventCompletion() { called_names(""); }

Event EventCompletion::complete(Event event) {
  switch (event.kind) {
    case EventKind::ops:
      runs_compiled_[event.thread] = event.compiled;
      event.value = event.ops().ops.size();
      break;
    case EventKind::run:
    case EventKind::step:
      event.compiled = runs_compiled_[event.thread];
      [[fallthrough]];
    case EventKind::record:
      event.set_name(called_names(event.name()));
      break;
    default:
      break;
  }
  return event;
}

EventTape::EventTape(size_t most) : most_(most) { start(); }

void EventTape::stop() {
  if (std::exchange(stopped_, true)) return;
  nanoseconds = event_time() - began;
  Watcher::stop();
}

void EventTape::take(std::span<const Event> told) {
  for (const Event& event : told) {
    if (events.size() < most_)
      events.push_back(completion_.complete(event));
    else
      ++missing;
  }
}

StepTape::StepTape() : Watcher({EventKind::step}) { start(); }

void StepTape::stop() {
  if (!std::exchange(stopped_, true)) Watcher::stop();
}

void StepTape::take(std::span<const Event> told) {
  for (const Event& event : told) {
    if (!wants(event) || event.thread != thread_) continue;
    while (!steps.empty() && steps.back().began > event.began) steps.pop_back();
    steps.push_back(event);
  }
}

}  // namespace tn
