#pragma once
// What makes kernel sets and plans from graphs: passes, fusion, code generation. The runtime is
// linked without it (src/rt/no_compiler.cpp), and then has the sets that files bring.
#include "compiler/kernel_set.h"

namespace tn {

/// Whether there is a compiler.
extern const bool has_compiler;

/// Runs the passes and fusion on `graph` for these likely sizes.
std::unique_ptr<KernelSet> make_kernel_set(const Graph& graph, const CompileOptions& options,
                                           std::span<const Binding> sizes, CompileReport* report,
                                           CompileCounts& counts,
                                           std::vector<SizeGuard> guards = {});
struct Rewritten;  // compiler/fitting.h
/// The set for what became of the graph of `set`.
std::unique_ptr<KernelSet> make_rewritten_set(const KernelSet& set, const Rewritten& made,
                                              std::span<const Binding> sizes,
                                              CompileReport* report);
/// A set that needs no more than `target` bytes at these sizes, because it computes values again;
/// or the one that needs least.
std::unique_ptr<KernelSet> make_fitting_set(const KernelSet& set, std::span<const Binding> sizes,
                                            int64_t target, CompileReport* report,
                                            CompileCounts& counts);
/// The plan of effort e0.
std::shared_ptr<const Plan> make_grouped_plan(const Graph& graph, const CompileOptions& options,
                                              CompileReport* report);

}  // namespace tn
