#pragma once
// Tensors of the host as tensors of a mesh, divided as others are; the text of divisions, which
// pickles hold.
#include <string>
#include <string_view>

#include "base/function_ref.h"
#include "mesh/mesh_value.h"
#include "tenon/tensor.h"

namespace tn::mesh {

/// A tensor of the host on a mesh, divided so. `division` is one of the mesh.
Tensor divided(const Tensor& x, Device mesh, const Division& division);
/// The same of a value. Blocks that are contiguous in it may be views of its memory, which then
/// lives as long as they do. `taken`: the bytes of it that the workers of this process hold.
enum class Blocks : uint8_t { copied, viewed };
Bound divided(const Bound& whole, TypeRef type, Device mesh, const Division& division,
              Blocks blocks, FunctionRef<void(int64_t from, int64_t bytes)> taken);

/// "@[data,-] stored(data) parameters(data)".
std::string to_text(const Mesh& mesh, const Division& division, int rank);
/// The inverse. Fails where `type` cannot be divided so.
Division parse_division(std::string_view text, const Mesh& mesh, const Type& type);

/// "mesh(data=2, model=4:8) @[data,-] stored(data) parameters(data)": where a tensor of a mesh
/// lies. Computes it first.
std::string placement(const Tensor& x);
/// A tensor of the host in the place that a text of `placement` says. Makes the mesh if there is
/// none.
Tensor placed(const Tensor& x, std::string_view placement);

}  // namespace tn::mesh
