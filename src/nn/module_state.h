#pragma once
// Modules that a function of one worker changes (tn::shard_map).
#include "tenon/tensor.h"

namespace tn::nn {

/// Whether what is assigned to a tensor of a module is carried out of the function that is traced.
bool is_carried_out(const Tensor* held);

}  // namespace tn::nn
