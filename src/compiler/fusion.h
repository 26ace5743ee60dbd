#pragma once
// Fusion: groups the ops of a graph into clusters, each computed in one pass over its points.
#include <map>

#include "compiler/compile_graph.h"
#include "compiler/coordinates.h"

namespace tn {

/// Ops that become one kernel. Its domain is a flat parallel axis (slot 0) and, when it folds, a
/// flat axis of folded points (slot 1); every value in it is computed at coordinates over these.
struct Cluster {
  Dim points = 1, folded = 1;
  bool folds = false;
  PolyId whole = 0;                   // position of the full domain's points, in row-major order
  std::vector<int> members = {};      // ops computed here, in graph order
  std::map<Val, Coords> stores = {};  // values written, at these coordinates
  int hero = -1;                      // the dot or convolution whose result the members finish
  Val sums = kNoVal;  // the stored value in whose memory that result is made; none: in its own
  std::vector<Val> reads = {};  // of immediate ones: values read where they lie
};

struct Fusion {
  static constexpr int kNowhere = -1;  // a view, a number, or repeated by its readers
  std::optional<PolyTable> polys;      // none in immediate ones
  std::vector<Cluster> clusters;
  std::vector<int> producer;  // by value: the op that makes it, -1 for inputs
  /// What runs, in order: an op by itself, or a cluster as ~number.
  std::vector<int> order;
  /// For effort e0: the members of a cluster visit the points of its last op, in whatever loops the
  /// strides of what it reads leave. Stores have no coordinates then.
  bool immediate = false;
};

/// The axes of a reduction and whether its result keeps them.
struct Folding {
  Axes axes;
  bool keepdims = false;
};
Folding folding_of(const GraphOp& op);

/// The points that op `end` visits: of its result, or of what it folds.
const Shape& domain_of(const Graph& graph, const GraphOp& end);

/// Whether loops can compute this op's scalar function or monoid for its element types.
bool has_loop_form(const Graph& graph, const GraphOp& op, const Target& target);
/// The scalar operations per element of an op whose `lower` computes each result element by
/// itself; -1 for others.
int pointwise_nest_cost(const Graph& graph, const GraphOp& op);

/// At effort e0 only ops over the same points are fused, and views are read in place. This needs no
/// index algebra, so it is fast enough for eager evaluation. `options.off` may name "fuse",
/// "row-kernels" and "epilogue". What is decided holds for all sizes; where it is a matter of cost,
/// `sizes` of the symbols weigh. Ops in `late`, by number, are computed with those that read them
/// and no earlier.
Fusion fuse(const Graph& graph, const CompileOptions& options, std::span<const Binding> sizes,
            Decisions* decisions, const std::vector<bool>& late = {});

}  // namespace tn
