#pragma once
// A recording of everything that happens, for those who draw it.
#include "base/events.h"

namespace tn {

std::string_view name_of(EventKind kind);

/// Records from construction to stop(). Bounded: after `most` events they are only counted.
class EventTape : public Watcher {
 public:
  explicit EventTape(size_t most);
  ~EventTape() override { stop(); }

  void stop();
  void take(std::span<const Event> events) override;

  /// To be read when it is stopped. The value of EventKind::ops is the number of them.
  std::vector<Event> events;
  uint64_t missing = 0;

 private:
  const size_t most_;
  bool stopped_ = false;
};

}  // namespace tn
