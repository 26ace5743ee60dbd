#pragma once
// The compiler of the whole library: passes, fusion, code generation.
#include "compiler/compiler.h"

namespace tn {

extern const Compiler whole_compiler;

std::unique_ptr<KernelSet> make_kernel_set(const Graph& graph, const CompileOptions& options,
                                           std::span<const Binding> sizes, CompileCounts& counts,
                                           std::vector<SizeGuard> guards);
struct Rewritten;  // compiler/fitting.h
/// The set for what became of the graph of `set`.
std::unique_ptr<KernelSet> make_rewritten_set(const KernelSet& set, const Rewritten& made,
                                              std::span<const Binding> sizes);
std::unique_ptr<KernelSet> make_fitting_set(const KernelSet& set, std::span<const Binding> sizes,
                                            int64_t target, CompileCounts& counts);
bool improve_placement(std::span<const Interval> intervals, std::span<const size_t> open,
                       std::vector<int64_t>& offsets, int64_t& end);

}  // namespace tn
