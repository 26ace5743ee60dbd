// In the place of compiler/set_maker: the runtime has the kernels that files bring, and no others.
// In that of compiler/placement_search: its plans are placed by the quick ways alone.
#include "base/error.h"
#include "compiler/placement.h"
#include "compiler/set_maker.h"

namespace tn {

const bool has_compiler = false;

std::unique_ptr<KernelSet> make_kernel_set(const Graph& graph, const CompileOptions&,
                                           std::span<const Binding>, CompileReport*, CompileCounts&,
                                           std::vector<SizeGuard>) {
  fail(Hint{"run it once at these sizes before it is saved, or load it with the whole library"},
       "{}: the file has no kernels for these sizes, and the runtime has no compiler", graph.name);
}

std::unique_ptr<KernelSet> make_fitting_set(const KernelSet&, std::span<const Binding>, int64_t,
                                            CompileReport*, CompileCounts&) {
  return nullptr;
}

std::shared_ptr<const Plan> make_grouped_plan(const Graph& graph, const CompileOptions&,
                                              CompileReport*) {
  fail("{}: the runtime has no compiler", graph.name);
}

bool improve_placement(std::span<const Interval>, std::span<const size_t>, std::vector<int64_t>&,
                       int64_t&) {
  return false;
}

}  // namespace tn
