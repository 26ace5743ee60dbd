#include "base/interrupt.h"

namespace tn {

void (*host_interrupt)() = nullptr;
thread_local const std::atomic<bool>* stop_wanted = nullptr;

void stop_if_asked() {
  if (stop_wanted && stop_wanted->load(std::memory_order_relaxed)) throw Stopped();
  if (!stop_wanted && host_interrupt) host_interrupt();
}

}  // namespace tn
