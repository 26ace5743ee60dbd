#pragma once
// The layout of convolutions.
#include "passes/pass.h"

namespace tn {

/// Convolutions with their channels last, and everything between them: see layout.cpp.
Graph put_channels_last(const Graph& graph, PassContext& context);

}  // namespace tn
