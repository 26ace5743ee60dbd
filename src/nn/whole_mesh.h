#pragma once
// Values of parts of a mesh, where they meet.
#include "tenon/mesh.h"

namespace tn::nn {

/// On the mesh that its device is a part of.
inline Tensor on_whole_mesh(const Tensor& x) {
  return is_mesh(x.device()) ? x.to(device_of(mesh_of(x.device()).whole())) : x;
}

}  // namespace tn::nn
