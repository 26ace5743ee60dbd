// The layout of a tensor on a mesh, as an op that changes nothing else.
#include "ops/families.h"
#include "ops/op_decls.h"
#include "ops/shard_attrs.h"

namespace tn::ops {
namespace {

View view_as_it_is(const ShardAttrs&, const Type& x) {
  View view;
  view.kind = View::Kind::reshape, view.shape = x.shape;
  return view;
}

}  // namespace

constexpr auto shard_def = Movement<ShardAttrs>{
    .doc = "`x`, divided among the workers of its mesh. Its values stay what they are.",
    .surface = false,
    .view = rule<view_as_it_is>,
    .adjoint = [](const ShardAttrs& a, const Tensor& ct,
                  const Tensor&) { return emit(shard, {ct}, a); },
    .samples = {{"f32[2,3]", "mesh_axes=\"data\", axes=[0]"}},
};
TN_OP(shard);

}  // namespace tn::ops
