#include "base/interrupt.h"

namespace tn {

HostSignals host_signals;
thread_local const std::atomic<bool>* stop_wanted = nullptr;
thread_local void (*own_stop_point)() = nullptr;

void stop_if_asked() {
  if (own_stop_point) return own_stop_point();
  if (stop_wanted && stop_wanted->load(std::memory_order_relaxed)) throw Stopped();
  if (!stop_wanted && host_signals.is_due && host_signals.is_due()) host_signals.handle();
}

}  // namespace tn
