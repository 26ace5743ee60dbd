#include "mesh/processes.h"

#include <atomic>
#include <utility>

#include "backend/launcher.h"
#include "base/error.h"
#include "compiler/compile_graph.h"
#include "ir/node.h"
#include "mesh/mesh_runtime.h"
#include "mesh/mesh_value.h"
#include "ops/op_decls.h"
#include "ops/shard_attrs.h"
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

static bool is_spread(const Buffer& buffer) {
  if (!is_mesh(buffer.device) || rank_of_process() < 0) return false;
  return mesh_of(buffer.device).is_part() || !value_in(buffer).division->layout.is_whole();
}

bool is_spread(const Bound& value) { return is_spread(*value.buffer); }

bool is_spread(const Tensor& x) {
  if (!is_mesh(x.device()) || rank_of_process() < 0) return false;
  x.eval();
  return is_spread(*slot_of(x).data.load(std::memory_order_acquire));
}

Bound gathered(const Bound& value, TypeRef type) {
  if (!is_spread(value)) return copy_to({}, value, static_cast<size_t>(type->bytes()));
  Device whole = device_of(mesh_of(value.buffer->device).whole());
  Bound in = copy_to(whole, value, static_cast<size_t>(type->bytes())), out;
  ops::ShardAttrs attrs;
  Graph graph;
  Val x = graph.add_input("x", on_device(type, whole));
  Val joined = graph.add(ops::shard, intern(*ops::shard.attrs, &attrs), {{x}}, graph.types);
  graph.outputs = {joined};
  run(*compile(graph, CompileOptions()), {&in, 1}, nullptr, {&out, 1});
  return copy_to({}, out, static_cast<size_t>(type->bytes()));
}

BlocksHere blocks_here(const Bound& value, TypeRef type) {
  const MeshValue& held = value_in(*value.buffer);
  Mesh mesh = mesh_of(value.buffer->device);
  return {held.blocks, on_device(local_type(mesh, held.division->layout, type), {})};
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

bool said_by_any(bool own) {
  std::string place = user_place ? user_place() : std::string();
  workers::group(workers::kWorld)
      .run({.kind = workers::Collective::all_reduce,
            .fold = workers::Fold::max,
            .element = Element::u8,
            .count = 1,
            .in = &own,
            .out = &own,
            .place = place});
  return own;
}

}  // namespace tn::mesh
