#pragma once
// What a run of a process's worker computes, and of what. Where workers are threads of one process,
// nothing is compared.
#include "mesh/mesh_part.h"
#include "plan/plan.h"
#include "workers/local_groups.h"

namespace tn::mesh {

class OriginsOfRun {
 public:
  OriginsOfRun(const MeshPart& part, const WorkerPlan& plan, const PlacedPlan& placed,
               std::span<const Bound> inputs, const Scalar* scalars);

  workers::RunOrigins of_calls() const { return {calls_, given_}; }
  Origin of_result(size_t i) const { return results_.empty() ? Origin() : results_[i]; }

 private:
  std::vector<workers::CallOrigin> calls_;
  std::vector<Origin> given_, results_;
};

}  // namespace tn::mesh
