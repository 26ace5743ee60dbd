#pragma once
// Tensors of the host as tensors of a mesh, divided as others are; the text of divisions, which
// pickles hold.
#include <string>
#include <string_view>

#include "mesh/mesh_value.h"
#include "tenon/tensor.h"

namespace tn::mesh {

/// A tensor of the host on a mesh, divided so. `division` is one of the mesh.
Tensor divided(const Tensor& x, Device mesh, const Division& division);

/// "mesh(data=2, model=4:8) @[data,-] stored(data) parameters(data)": where a tensor of a mesh
/// lies. Computes it first.
std::string placement(const Tensor& x);
/// A tensor of the host in the place that a text of `placement` says. Makes the mesh if there is
/// none.
Tensor placed(const Tensor& x, std::string_view placement);

}  // namespace tn::mesh
