#pragma once
// Graph rewrites that preserve results: checkpointed segments.
#include "ir/graph.h"

namespace tn {

/// The ops in so many segments of about equal bytes, cut where little is alive. Derivatives keep
/// what passes from one to the next, and compute the rest of a segment again when they come to it.
/// The last one is left as it is: its derivative comes at once.
Graph in_segments(const Graph& forward, int segments);

}  // namespace tn
