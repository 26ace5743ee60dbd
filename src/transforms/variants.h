#pragma once
// Graph rewrites that preserve results: checkpointed segments.
#include "ir/graph.h"

namespace tn {

/// Splits the ops into checkpointed segments of about equal bytes, cut where few bytes are live.
/// Derivatives keep the values between segments and rematerialise the rest of a segment. The last
/// segment is not checkpointed: its derivative runs immediately.
Graph in_segments(const Graph& forward, int segments);

}  // namespace tn
