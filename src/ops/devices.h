#pragma once
// Moving tensors between devices.
#include "tenon/tensor.h"

namespace tn {

/// A tensor in the form in which it can move to a device. Meshes set it: of processes none has a
/// divided tensor whole.
extern Tensor (*movable_to)(const Tensor& x, Device device);

}  // namespace tn
