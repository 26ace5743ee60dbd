#pragma once
// Graphs as files hold them.
#include "ir/graph.h"

namespace tn {

/// Parses what to_text printed and takes types and attributes as they stand: no rule of an op is
/// asked, so the runtime, which has none, can read it. For texts that are trusted.
Graph read_graph(std::string_view text);

}  // namespace tn
