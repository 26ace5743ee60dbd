#include "compiler/compile.h"

#include "compiler/lower.h"

namespace tn {

std::shared_ptr<const Plan> compile(const Graph& graph, const CompileOptions& options,
                                    CompileReport* report) {
  Graph expanded = expand_composites(graph);
  Lowerer lowerer(expanded, options, report);
  return lowerer.lower();
}

}  // namespace tn
