#pragma once
// Compiler: what makes kernel sets and plans from graphs (passes, fusion, code generation), as an
// interface. Everything else works without one, on the sets that files bring.
#include "compiler/kernel_set.h"
#include "compiler/placement.h"

namespace tn {

struct Compiler {
  /// Runs the passes and fusion on `graph` for these likely sizes. A set of effort e0 is for one
  /// plan.
  std::unique_ptr<KernelSet> (*make_kernel_set)(const Graph& graph, const CompileOptions& options,
                                                std::span<const Binding> sizes,
                                                CompileCounts& counts,
                                                std::vector<SizeGuard> guards);
  /// A set that rematerialises values so that it needs at most `target` bytes at these sizes, or
  /// the one that needs least.
  std::unique_ptr<KernelSet> (*make_fitting_set)(const KernelSet& set,
                                                 std::span<const Binding> sizes, int64_t target,
                                                 CompileCounts& counts);
  /// Both for graphs over devices (compiler/placing.h).
  Compilation (*compile_placed)(const Graph& graph, const CompileOptions& options);
  std::unique_ptr<const PlacedCode> (*place)(const Graph& graph, const CompileOptions& options);
  /// Looks for a better placement of the intervals `open` than `offsets`, which ends at `end`; the
  /// others lie where they are. Returns whether there is none better than the one that is there
  /// then. How far it looks depends on the work done, not on the clock: plans are the same
  /// everywhere.
  bool (*improve_placement)(std::span<const Interval> intervals, std::span<const size_t> open,
                            std::vector<int64_t>& offsets, int64_t& end);
};

/// Null in the runtime library, which is linked without one. The whole library sets it when it is
/// loaded (eval/eval.cpp).
extern const Compiler* compiler;

}  // namespace tn
