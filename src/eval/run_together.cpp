#include "eval/run_together.h"

#include <algorithm>

#include "ir/body.h"
#include "mesh/mesh_runtime.h"
#include "ops/collectives.h"
#include "tenon/mesh.h"

namespace tn {

bool is_run_together(const Graph& graph) {
  if (mesh::rank_of_process() < 0) return false;
  bool is_divided =
      std::ranges::any_of(graph.types, [](TypeRef type) { return is_mesh(type->device); });
  return is_divided || std::ranges::any_of(graph.ops, [](const GraphOp& op) {
           return ops::is_collective(*op.op) || std::ranges::any_of(bodies_of(op), [](GraphRef g) {
                    return is_run_together(*g);
                  });
         });
}

}  // namespace tn
