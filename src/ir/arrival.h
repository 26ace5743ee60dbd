#pragma once
// What becomes of values that travel to another device because an op needs them there.
#include "tenon/tensor.h"

namespace tn {

/// Called with the value on its new device, on this thread. Null: it stays what it is.
using Arrival = Tensor (*)(const Tensor& there);
extern constinit thread_local Arrival arrival;

}  // namespace tn
