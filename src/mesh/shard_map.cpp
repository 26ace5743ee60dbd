// The function is called once, on parameters with the types of a worker's parts, and what it
// recorded is replayed on the parts themselves. So there are ordinary ops between `to_local` and
// `from_local`, and derivatives, batches and compilation need no rule for shard_map.
#include "mesh/shard_map.h"

#include <utility>

#include "base/error.h"
#include "ir/arrival.h"
#include "ir/emit.h"
#include "ir/interned.h"
#include "ir/mesh_layout.h"
#include "ir/number.h"
#include "ir/trace.h"
#include "ops/op_decls.h"
#include "ops/worker_parts.h"
#include "tenon/shard_map.h"
#include "transforms/tape.h"

namespace tn::mesh {
namespace {

thread_local const Mesh* current_mesh = nullptr;

class MeshOfWorkers {
 public:
  explicit MeshOfWorkers(const Mesh& mesh)
      : before_(std::exchange(current_mesh, &mesh)), arrival_(std::exchange(arrival, arrived)) {}
  ~MeshOfWorkers() { current_mesh = before_, arrival = arrival_; }
  MeshOfWorkers(const MeshOfWorkers&) = delete;

 private:
  /// What is the same for every worker becomes a value of each, so that cotangents are summed.
  static Tensor arrived(const Tensor& there) {
    return emit(ops::to_local, {there},
                ops::WorkerPartsAttrs{intern(to_text(*current_mesh)), {}, {}});
  }

  const Mesh* before_;
  Arrival arrival_;
};

ops::WorkerPartsAttrs parts_of(const ShardSpec& spec, const Mesh& mesh, const Type& type) {
  if (spec.stored)
    fail(Hint{"name the axes that divide it"},
         "shard_map: a stored layout is one of memory: it says nothing of a worker's part");
  std::string names;
  ops::ShardAttrs attrs = attrs_of_spec(spec, mesh, type, names);
  return {intern(to_text(mesh)), intern(names), attrs.axes};
}

Tensor part_of_worker(const Tensor& x, const ShardSpec& spec, const Mesh& mesh, Device device) {
  Tensor there = x.to(device);
  return emit(ops::to_local, {there}, parts_of(spec, mesh, *type_of(there)));
}

/// What the function closes over is the same for every worker. Tensors of the host travel where
/// they meet a part.
Tensor closed_over(const Tensor& x, const Mesh& mesh, Device device) {
  return x.device() == device ? part_of_worker(x, {}, mesh, device) : x;
}

/// Fails where a part leaves the mesh: another device has one value, not one of each worker.
void check_stays(const Graph& body) {
  for (const GraphOp& op : body.ops) {
    if (op.op != &ops::to_device) continue;
    Device from = body.types[static_cast<size_t>(body.in(op)[0])]->device;
    if (!from.is_host())
      fail(Hint{"return it, and move the result"},
           "shard_map: the part of a worker cannot leave the mesh inside the function");
  }
}

/// The results of `f` for the parts, as the worker computes them.
Tensors run_on_parts(const Function& f, const Tensors& parts, const Mesh& mesh, Device device) {
  Tensors params;
  for (const Tensor& part : parts) {
    RecordScope scope;
    params.push_back(make_param(type_of(part)));
  }
  uint64_t start = next_sequence();
  Trace trace("shard_map", Trace::Values::unknown);
  Tensors out;
  {
    MeshOfWorkers inside(mesh);
    DeviceScope on(device);
    out = f(params);
  }
  trace.end();
  check_given(out, "shard_map", "result");
  if (!trace.effects.empty())
    fail("shard_map: the function prints or sends: workers would do it in any order");
  RecordScope interning;
  Captured body = graph_of(tape_since(start, params, out), params, out);
  check_stays(body.graph);
  Tensors given = parts;
  for (const Tensor& leaf : body.leaves) given.push_back(closed_over(leaf, mesh, device));
  return replay(body.graph, given);
}

}  // namespace

const Mesh* mesh_of_shard_map() { return current_mesh; }

}  // namespace tn::mesh

namespace tn {

using namespace mesh;

Tensors flat::call_on_workers(const Function& f, const Tensors& args, const Mesh& mesh,
                              const ShardSpecs& in_specs, const Callback<ShardSpecs()>& out_specs) {
  check_given(args, "shard_map", "argument");
  invariant(in_specs.size() == args.size(), "shard_map: a layout for each argument");
  if (mesh_of_shard_map()) fail("shard_map: the function of a worker cannot use shard_map itself");
  Device device = device_of(mesh);
  Tensors parts;
  for (size_t i = 0; i < args.size(); ++i)
    parts.push_back(part_of_worker(args[i], in_specs[i], mesh, device));
  Tensors made = run_on_parts(f, parts, mesh, device);
  ShardSpecs specs = out_specs();
  invariant(specs.size() == made.size(), "shard_map: a layout for each result");
  for (size_t i = 0; i < made.size(); ++i) {
    Tensor part = made[i].to(device);
    made[i] = emit(ops::from_local, {part}, parts_of(specs[i], mesh, *type_of(part)));
  }
  return made;
}

ShardSpecs typed::specs_by_tensor(const ShardSpecs& specs, const std::vector<size_t>& counts,
                                  std::string_view what) {
  if (specs.size() != counts.size())
    fail("shard_map: {} layouts for {} {}", specs.size(), counts.size(), what);
  ShardSpecs all;
  for (size_t i = 0; i < counts.size(); ++i) all.insert(all.end(), counts[i], specs[i]);
  return all;
}

}  // namespace tn
