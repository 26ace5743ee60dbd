#pragma once
// NVIDIA GPUs as devices of the library.
#include "backend/cuda/gpu.h"
#include "runtime/device.h"

namespace tn::cuda {

/// Of all GPUs; the driver is loaded when one is first named.
DeviceRuntime& runtime();
/// Of a device of that runtime; its context is made on first use.
Gpu& gpu_of(Device device);
/// For tests, after another driver has taken the place of the machine's.
void forget_gpus();

}  // namespace tn::cuda
