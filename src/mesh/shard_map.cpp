// The function is called once, on parameters with the types of a worker's parts, and what it
// recorded is replayed on the parts themselves. So there are ordinary ops between `to_local` and
// `from_local`, and derivatives, batches and compilation need no rule for shard_map.
#include "mesh/shard_map.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "ir/arrival.h"
#include "ir/carried_state.h"
#include "ir/emit.h"
#include "ir/interned.h"
#include "ir/mesh_layout.h"
#include "ir/number.h"
#include "ir/trace.h"
#include "ops/op_decls.h"
#include "ops/worker_parts.h"
#include "sharding/variation.h"
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
         "shard_map: tn::stored describes storage, not the part that a worker computes with");
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

/// The axes that divide a tensor.
uint32_t axes_of(const ShardSpec& spec, const Mesh& mesh) {
  uint32_t axes = 0;
  for (const std::string& names : spec.axes)
    for (int t = 0; t < mesh.count(); ++t) {
      bool is_named = format("+{}+", names).find(format("+{}+", mesh[t].name)) != std::string::npos;
      if (is_named && mesh[t].size > 1) axes |= 1u << t;
    }
  return axes;
}

/// The first axis of the mesh along which a value may differ though its layout does not name it;
/// null: there is none.
const MeshAxis* axis_left_out(uint32_t differs, const ShardSpec& spec, const Mesh& mesh) {
  for (int t = 0; t < mesh.count(); ++t)
    if (mesh[t].size > 1 && (differs & ~axes_of(spec, mesh)) >> t & 1) return &mesh[t];
  return nullptr;
}

/// Fails where a result that should be the same on all workers along an axis may differ: there is
/// one module for all of them, and one value where the layout does not name the axis.
void check_equal(const Graph& body, const Mesh& mesh, std::span<const uint32_t> divided,
                 const ShardSpecs& specs, FunctionRef<std::string(size_t)> name_of_state) {
  std::vector<uint32_t> inputs(divided.begin(), divided.end());
  inputs.resize(static_cast<size_t>(body.inputs()));  // what it closes over is equal
  std::vector<uint32_t> axes = sharding::variation(body, mesh, inputs);
  for (size_t i = 0; i < body.outputs.size(); ++i) {
    uint32_t differs = axes[static_cast<size_t>(body.outputs[i])];
    const MeshAxis* axis = axis_left_out(differs, specs[i], mesh);
    if (!axis) continue;
    std::string mean =
        format("tn.distributed.all_sum(x, axis=\"{}\") / {}", axis->name, axis->size);
    if (std::string name = name_of_state(i); !name.empty())
      fail(Hint{format("make it equal before it is assigned, such as by {}, or call the module "
                       "outside of shard_map, where its statistics are those of the whole batch",
                       mean)},
           "shard_map: the function assigns to {}, and the value differs by worker along '{}'",
           name, axis->name);
    fail(Hint{format("make it equal in the function, such as by {}, or name '{}' in out_specs: the "
                     "result is then the parts of all workers, joined",
                     mean, axis->name)},
         "shard_map: result {} differs by worker along '{}', which its layout does not name", i,
         axis->name);
  }
}

/// The results of `f` for the parts, as the worker computes them. `divided`: the axes that divide
/// each argument; `specs` receives the layouts of the results.
Tensors run_on_parts(const Function& f, const Tensors& parts, const Mesh& mesh, Device device,
                     std::span<const uint32_t> divided, FunctionRef<ShardSpecs()> out_specs,
                     FunctionRef<std::string(size_t)> name_of_state, ShardSpecs& specs) {
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
    fail(Hint{"return the value, and do this outside"},
         "shard_map: {} is not allowed inside: its order across workers is undefined",
         trace.effects[0].node()->op->name);
  RecordScope interning;
  Captured body = capture(tape_since(start, params, out), params, out);
  check_stays(body.graph);
  specs = out_specs();
  invariant(specs.size() == out.size(), "shard_map: a layout for each result");
  check_equal(body.graph, mesh, divided, specs, name_of_state);
  Tensors given = parts;
  for (const Tensor& leaf : body.leaves) given.push_back(closed_over(leaf, mesh, device));
  return replay(body.graph, given);
}

}  // namespace

const Mesh* mesh_of_shard_map() { return current_mesh; }

Tensors call_on_workers(const Function& f, const Tensors& args, const Mesh& mesh,
                        const ShardSpecs& in_specs, FunctionRef<ShardSpecs()> out_specs,
                        FunctionRef<std::string(size_t result)> name_of_state) {
  check_given(args, "shard_map", "argument");
  invariant(in_specs.size() == args.size(), "shard_map: a layout for each argument");
  if (mesh_of_shard_map()) fail("shard_map: the function of a worker cannot use shard_map itself");
  Device device = device_of(mesh);
  Tensors parts;
  std::vector<uint32_t> divided;
  for (size_t i = 0; i < args.size(); ++i) {
    parts.push_back(part_of_worker(args[i], in_specs[i], mesh, device));
    divided.push_back(axes_of(in_specs[i], mesh));
  }
  ShardSpecs specs;
  Tensors made = run_on_parts(f, parts, mesh, device, divided, out_specs, name_of_state, specs);
  for (size_t i = 0; i < made.size(); ++i) {
    Tensor part = made[i].to(device);
    made[i] = emit(ops::from_local, {part}, parts_of(specs[i], mesh, *type_of(part)));
  }
  return made;
}

}  // namespace tn::mesh

namespace tn {

Tensors flat::call_on_workers(const Function& f, const Tensors& args, const Mesh& mesh,
                              const ShardSpecs& in_specs, const Callback<ShardSpecs()>& out_specs) {
  std::unique_ptr<CarriedState> state;
  size_t results = 0, held = 0;  // those of state are behind the results
  Function with_state = [&](const Tensors& params) {
    if (watch_modules) state = watch_modules();
    Tensors made = f(params);
    results = made.size();
    if (state) std::ranges::move(state->take(params), std::back_inserter(made));
    held = made.size() - results;
    return made;
  };
  auto specs = [&] {
    ShardSpecs all = out_specs();
    all.resize(all.size() + held);
    return all;
  };
  auto name = [&](size_t i) { return i < results ? std::string() : state->name(i - results); };
  Tensors made = mesh::call_on_workers(with_state, args, mesh, in_specs, specs, name);
  if (held) state->assign(std::span(made).subspan(results));
  made.resize(results);
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
