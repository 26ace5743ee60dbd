#pragma once
// Variants: graphs that compute what another one does, otherwise.
#include "ir/graph.h"

namespace tn {

/// The ops in so many segments of about equal bytes, cut where little is alive. Derivatives keep
/// what passes from one to the next, and compute the rest of a segment again when they come to it.
/// The last one is left as it is: its derivative comes at once.
Graph in_segments(const Graph& forward, int segments);

/// The ops called again under a policy of mixed precision (tenon/amp.h), bf16 or f16. Inputs and
/// outputs keep their types. Graphs among the attributes of ops stay as they are.
Graph in_precision(const Graph& graph, DType narrow);

}  // namespace tn
