#pragma once
// Partitioning: the global graph as the graph that every worker runs.
#include "sharding/propagate.h"

namespace tn::sharding {

struct Partitioned {
  Graph graph;
  std::vector<Layout> inputs, outputs;  // of the global graph, in which workers hold them
  int transitions = 0;                  // changes of layout that communicate, on a mesh of any size
  int folds = 0;  // ops that fold a divided dimension, and so add in another order
};

/// What a run gives to the graph of a worker.
struct Given {
  std::vector<Layout> inputs = {};  // in which workers hold them; none: as propagation found
  int constants = 0;                // so many of the first are kept, whether they are needed or not
};

/// Ops take their loops from the layouts of their results, unless a fold came first. A fold over a
/// dimension that all its operands divide stays divided and is resolved where its value is read,
/// unless the reader is linear and its result is no larger.
///
/// Graphs for meshes of the same parts compute the same bits, whatever the sizes.
Partitioned partition(const Graph& graph, const Mesh& mesh, const Layouts& layouts, Links& links,
                      Decisions* decisions, const Given& given = {});

/// The attributes of an op for operands and results of other extents.
const Attrs* local_attrs(const GraphOp& op, Types in, Types out, Types local_in, Types local_out);

}  // namespace tn::sharding
