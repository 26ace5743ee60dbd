#include "observe/launched_worker.h"

#include <charconv>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/events.h"
#include "workers/launch_environment.h"

namespace tn {

void find_worker_of_process() {
  try {
    workers::LaunchEnvironment launch = workers::find_launch();
    if (launch.size > 1) worker_of_process = launch.rank;
  } catch (const Error&) {
    // Whoever asks for the workers is told.
  }
}

uint64_t time_since_launch(uint64_t event_time) {
  const char* text = std::getenv("TENON_LAUNCH_TIME");
  uint64_t launched = 0, loaded = time_of_load();
  if (text) std::from_chars(text, text + std::strlen(text), launched);
  return launched && launched < loaded ? event_time + (loaded - launched) : event_time;
}

}  // namespace tn
