#pragma once
// The attributes of `shard`.
#include "ir/opdef.h"

namespace tn::ops {

/// Whose layout comes first where several spread: see sharding/propagate.h.
enum class ShardRole : uint8_t { data, parameter, stored };
inline constexpr std::string_view kShardRoles[] = {"data", "parameter", "stored"};
constexpr ChoiceNames choice_names(ShardRole) { return kShardRoles; }

/// Axis k of the mesh among `mesh_axes`, which commas separate, divides dimension `axes[k]`. Those
/// of one dimension are in order from the outermost.
struct ShardAttrs {
  std::string_view mesh_axes;
  Axes axes;
  ShardRole role = ShardRole::data;
  static constexpr void fields(auto& a, auto&& f) {
    f("mesh_axes", a.mesh_axes), f("axes", a.axes), f("role", a.role);
  }
};

}  // namespace tn::ops
