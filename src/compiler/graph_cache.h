#pragma once
// Compiled graphs by what they compute: functions that record the same share one.
#include "compiler/compile_graph.h"

namespace tn {

/// The compiled form of `graph`: that of an equal graph, where there is one. Ops, attributes,
/// types, numbers, options and the identity of constants count; names and places do not.
///
/// The least recently used are dropped beyond a bounded number. Graphs with constants are not kept
/// after their functions are gone: they would keep the memory of the constants.
std::shared_ptr<const CompiledGraph> compiled_graph(const Graph& graph,
                                                    const CompileOptions& options);

struct GraphCacheStats {
  int64_t hits = 0, made = 0, kept = 0;
};
GraphCacheStats graph_cache_stats();
void clear_graph_cache();

}  // namespace tn
