#pragma once
// The debug log of compilation. TENON_DEBUG_COMPILE=1 enables it.
#include <atomic>

#include "base/text.h"
#include "tenon/callback.h"

namespace tn {

/// Takes a line without its end. Calls come one at a time.
using DebugSink = Callback<void(std::string_view line)>;

/// Sends lines to `sink`, whatever the environment says. An empty one restores the default:
/// standard error if the log is enabled, else nowhere.
void set_debug_sink(DebugSink sink);

extern std::atomic<bool> debug_log_on;
void write_debug_line(std::string line);

/// "[COMPILE] traced gelu at train.py:31: first call". Costs one load while the log is disabled.
template <class... A>
void debug_compile(format_string<A...> text, A&&... args) {
  if (debug_log_on.load(std::memory_order_relaxed))
    write_debug_line("[COMPILE] " + format(text, std::forward<A>(args)...));
}

}  // namespace tn
