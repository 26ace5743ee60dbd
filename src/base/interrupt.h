#pragma once
// Long work that somebody may want to stop.
#include <atomic>
#include <exception>

namespace tn {

/// Set by a host language: throws its exception when its user wants to stop what this thread does.
extern void (*host_interrupt)();

/// A thread of the library's own stops when this becomes true.
extern thread_local const std::atomic<bool>* stop_wanted;

struct Stopped : std::exception {
  const char* what() const noexcept override { return "stopped"; }
};

/// Called between the parts of long work, where nothing is left half-done.
void stop_if_asked();

}  // namespace tn
