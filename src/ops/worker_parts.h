#pragma once
// The attributes of `to_local` and `from_local`.
#include "ir/opdef.h"

namespace tn::ops {

/// How a tensor is divided among the workers of a mesh, which is written as "data=4, model=2". Axis
/// k among `mesh_axes`, which commas separate, divides dimension `axes[k]`.
struct WorkerPartsAttrs {
  std::string_view mesh, mesh_axes;
  Axes axes;
  static constexpr void fields(auto& a, auto&& f) {
    f("mesh", a.mesh, required), f("mesh_axes", a.mesh_axes), f("axes", a.axes);
  }
};

}  // namespace tn::ops
