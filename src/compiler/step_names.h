#pragma once
// Names of steps, from the user's code: the path of the module and the ops called.
//
//     blocks[0].attn.softmax
//     blocks[0]: add + norm.layer_norm
#include "compiler/kernel_set.h"

namespace tn {

/// Names of the items of `set.order`.
std::vector<std::string> step_names(const KernelSet& set);
/// The name of a step that computes these ops.
std::string step_name(std::span<const GraphOp* const> ops);

}  // namespace tn
