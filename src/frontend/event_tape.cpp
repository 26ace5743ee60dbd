#include "frontend/event_tape.h"

#include <utility>

namespace tn {

std::string_view name_of(EventKind kind) {
  constexpr std::string_view kNames[] = {
      "record",         "ops",   "run",   "step", "compile_starting", "compile_complete",
      "compile_failed", "share", "memory"};
  return kNames[static_cast<size_t>(kind)];
}

EventTape::EventTape(size_t most)
    : Watcher({EventKind::record, EventKind::ops, EventKind::run, EventKind::step,
               EventKind::compile_starting, EventKind::compile_complete, EventKind::compile_failed,
               EventKind::share, EventKind::memory}),
      most_(most) {
  start();
}

void EventTape::stop() {
  if (!std::exchange(stopped_, true)) Watcher::stop();
}

void EventTape::take(std::span<const Event> told) {
  for (const Event& event : told) {
    if (events.size() >= most_) {
      ++missing;
      continue;
    }
    events.push_back(event);
    if (event.kind == EventKind::ops) events.back().value = event.ops().ops.size();
  }
}

}  // namespace tn
