#include "compiler/compile.h"

#include "compiler/lower.h"

namespace tn {

std::shared_ptr<const Plan> compile(const Graph& graph, Effort, int runtime_scalars) {
  Graph expanded = expand_composites(graph);
  return Lowerer(expanded, runtime_scalars).lower();
}

std::string kernels_text(const Graph& graph, Effort) {
  Graph expanded = expand_composites(graph);
  Lowerer lowerer(expanded, 0);
  lowerer.keep_text = true;
  lowerer.lower();
  return lowerer.text();
}

}  // namespace tn
