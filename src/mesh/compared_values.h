#pragma once
// What a process gives to its worker: hashes that collectives compare with those of other
// processes.
#include <vector>

#include "mesh/mesh_part.h"
#include "plan/plan.h"

namespace tn::mesh {

/// Some bytes of the host.
workers::GivenValue given_by_host(const char* bytes, size_t count);

/// What a run is given: nothing, where workers are threads of one process.
class Given {
 public:
  Given(const MeshPart& part, const WorkerPlan& plan, const PlacedPlan& placed,
        std::span<const Bound> inputs, const Scalar* scalars);

  workers::GivenValues values() const { return {plan_, hash_, known_}; }
  /// What a result is made of, if no collective has made it equal.
  workers::GivenValue joined(size_t result) const;

 private:
  void add(const workers::GivenValue& value, Loc reader);

  uint64_t plan_ = 0, hash_ = 0;
  std::vector<workers::GivenValue> known_;
};

}  // namespace tn::mesh
