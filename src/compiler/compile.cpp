#include "compiler/compile.h"

#include "compiler/lower.h"
#include "compiler/lower_fused.h"

namespace tn {

std::shared_ptr<const Plan> compile(const Graph& graph, const CompileOptions& options,
                                    CompileReport* report) {
  Graph expanded = expand_composites(graph);
  if (options.effort == Effort::e0) return Lowerer(expanded, options, report).lower();
  return FusedLowerer(expanded, options, report).lower();
}

}  // namespace tn
