#include "eval/run_together.h"

#include <algorithm>

#include "eval/eval.h"
#include "ir/body.h"
#include "ir/trace.h"
#include "mesh/mesh_runtime.h"
#include "ops/collectives.h"
#include "tenon/mesh.h"

namespace tn {

static bool has_collectives(const Graph& graph) {
  auto is_on_mesh = [](TypeRef type) { return is_mesh(type->device); };
  auto has = [](const GraphOp& op) {
    auto has_inside = [](GraphRef body) { return has_collectives(*body); };
    return ops::needs_workers(*op.op) || std::ranges::any_of(bodies_of(op), has_inside);
  };
  return std::ranges::any_of(graph.types, is_on_mesh) || std::ranges::any_of(graph.ops, has);
}

// The launcher is asked last: a program without collectives may have none that fits.
bool is_run_together(const Graph& graph) {
  return has_collectives(graph) && mesh::rank_of_process() >= 0;
}

void evaluate_together(const Tensors& results) {
  auto is_on_mesh = [](const Tensor& x) { return is_mesh(x.device()); };
  if (std::ranges::any_of(results, is_on_mesh) && !Trace::current()) flush(results);
}

}  // namespace tn
