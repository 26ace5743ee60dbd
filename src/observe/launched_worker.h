#pragma once
// Processes of a launcher, for logs.
#include <cstdint>

namespace tn {

/// Sets `worker_of_process` where a launcher has started several.
void find_worker_of_process();
/// Nanoseconds from the launch to an event time; the event time itself where nobody launched it.
uint64_t time_since_launch(uint64_t event_time);

}  // namespace tn
