// The way into a function of one worker, and back (tn.shard_map).
//
//     to_local    a tensor of the mesh -> the part of each worker, a value that varies by worker
//     from_local  the parts -> a tensor of the mesh; axes that do not divide it have equal parts
//
// Both are no-ops for a worker, which the sharding pass removes. An axis that divides nothing makes
// the transposes: many workers read one value, so their cotangents are summed, and of equal results
// each worker gets its share of the cotangent.
#include "ops/worker_parts.h"

#include "base/error.h"
#include "ir/mesh_layout.h"
#include "ops/collectives.h"
#include "ops/families.h"
#include "ops/op_decls.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

TypeList infer_to_local(const WorkerPartsAttrs& a, Types in) {
  Mesh mesh = parse_mesh(a.mesh);
  Layout layout = layout_of(mesh, a.mesh_axes, a.axes, *in[0]);
  return Type{in[0]->dtype, local_shape(mesh, layout, in[0]->shape)};
}

/// The names of the axes, which commas separate.
template <class F>
void for_each_name(std::string_view names, F&& f) {
  while (!names.empty()) {
    size_t end = std::min(names.find(','), names.size());
    f(names.substr(0, end));
    names.remove_prefix(std::min(end + 1, names.size()));
  }
}

TypeList infer_from_local(const WorkerPartsAttrs& a, Types in) {
  Mesh mesh = parse_mesh(a.mesh);
  Type whole{in[0]->dtype, in[0]->shape};
  int k = 0;
  for_each_name(a.mesh_axes, [&](std::string_view name) {
    int axis = mesh.find(name), dim = k < a.axes.size() ? a.axes[k].i : -1;
    ++k;
    if (axis >= 0 && dim >= 0 && dim < whole.rank())
      whole.shape[dim] = whole.shape[dim] * mesh[axis].size;
  });
  layout_of(mesh, a.mesh_axes, a.axes, whole);  // fails where it is none
  return whole;
}

/// Calls f for the axes of the mesh along which all workers have the same part.
template <class F>
void for_each_equal(const WorkerPartsAttrs& a, F&& f) {
  for (const MeshAxis& axis : parse_mesh(a.mesh).axes) {
    bool divides = false;
    for_each_name(a.mesh_axes, [&](std::string_view name) { divides |= name == axis.name; });
    if (!divides && axis.size > 1) f(axis);
  }
}

Tensor adjoint_of_to_local(const WorkerPartsAttrs& a, T ct, const Tensors&, int) {
  Tensor sum = ct;
  for_each_equal(a, [&](const MeshAxis& axis) {
    GroupAttrs group{intern(axis.name), axis.size};
    sum = emit(vary, {emit(all_sum, {sum}, group)}, group);  // a value of each worker again
  });
  return emit(from_local, {sum}, a);
}

Tensor adjoint_of_from_local(const WorkerPartsAttrs& a, T ct, const Tensors&, int) {
  int64_t equal = 1;
  for_each_equal(a, [&](const MeshAxis& axis) { equal *= axis.size; });
  Tensor part = emit(to_local, {ct}, a);
  return equal == 1 ? part : part / static_cast<double>(equal);
}

/// Elsewhere than on a mesh there is one worker.
void lower_alone(const WorkerPartsAttrs& a, loop::Lowering& l) {
  if (parse_mesh(a.mesh).workers() > 1)
    fail(Hint{"evaluate it on the mesh: `with tn.Mesh(...):`"},
         "shard_map: the function is for the mesh {}, and this runs on one worker", a.mesh);
  loop::Coords at = l.loops(l.out[0]->shape);
  l.store(0, at, l.load(0, at));
}

}  // namespace

constexpr auto to_local_def = Op<WorkerPartsAttrs>{
    .doc = "The part of `x` that each worker of a mesh holds, for a function of one worker.",
    .args = {"x"},
    .surface = false,
    .infer = rule<infer_to_local>,
    .lower = rule<lower_alone>,
    .linear = Linear::each,
    .adjoint = rule<adjoint_of_to_local>,
    .batch = Batch::aligned,
    .samples = {{"f32[2,3]", "mesh=\"data=1\", mesh_axes=\"data\", axes=[0]"}},
};
TN_OP(to_local);

constexpr auto from_local_def = Op<WorkerPartsAttrs>{
    .doc = "The tensor of a mesh of which each worker holds the part `x`.",
    .args = {"x"},
    .surface = false,
    .infer = rule<infer_from_local>,
    .lower = rule<lower_alone>,
    .linear = Linear::each,
    .adjoint = rule<adjoint_of_from_local>,
    .batch = Batch::aligned,
    .samples = {{"f32[2,3]", "mesh=\"data=1\", mesh_axes=\"data\", axes=[1]"}},
};
TN_OP(from_local);

}  // namespace tn::ops
