#include "base/debug_log.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "base/at_fork.h"

namespace tn {

namespace {

bool asked_for() {
  const char* value = std::getenv("TENON_DEBUG_COMPILE");
  return value && *value && std::string_view(value) != "0";
}

struct Log {
  std::mutex mutex;
  DebugSink sink;
};

Log& the_log() {
  static auto& only = guarded_for_process<Log>(kInnermost);  // used while the process ends, too
  return only;
}

}  // namespace

std::atomic<bool> debug_log_on = asked_for();

void set_debug_sink(DebugSink sink) {
  std::lock_guard lock(the_log().mutex);
  debug_log_on = sink || asked_for();
  the_log().sink = std::move(sink);
}

void write_debug_line(std::string line) {
  std::lock_guard lock(the_log().mutex);
  if (the_log().sink) return the_log().sink(line);
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace tn
