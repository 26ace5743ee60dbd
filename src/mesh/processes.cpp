#include "mesh/processes.h"

#include <atomic>
#include <utility>

#include "ir/node.h"
#include "mesh/mesh_value.h"
#include "tenon/mesh.h"
#include "workers/local_groups.h"
#include "workers/world.h"

namespace tn::mesh {

int rank_of_process() {
  static const int rank = [] {
    const workers::Transport& all = workers::group(workers::kWorld);
    return all.size() > 1 ? all.rank() : -1;
  }();
  return rank;
}

bool is_spread(const Tensor& x) {
  if (!is_mesh(x.device()) || rank_of_process() < 0) return false;
  x.eval();
  const MeshValue& value = value_in(*slot_of(x).data.load(std::memory_order_acquire));
  return mesh_of(x.device()).is_part() || !value.division->layout.is_whole();
}

bool said_by_first(bool own) {
  workers::group(workers::kWorld)
      .run({.kind = workers::Collective::broadcast,
            .element = Element::u8,
            .count = 1,
            .in = &own,
            .out = &own});
  return own;
}

CallTogether::CallTogether() {
  static std::atomic<uint64_t> calls = 0;
  before_ = std::exchange(workers::run_origins.call, ++calls);
}

CallTogether::~CallTogether() { workers::run_origins.call = before_; }

}  // namespace tn::mesh
