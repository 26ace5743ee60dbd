#pragma once
// Values between a mesh and its parts, and between the parts of one mesh, without a gather on the
// host.
#include "mesh/mesh_world.h"

namespace tn::mesh {

/// How a value of `from` is divided as one of `to`.
const Division* moved_division(const Mesh& from, const Division& division, MeshWorld& to);

/// A value of `from` as one of `to`, a mesh with the same whole. Along the axes that both have it
/// stays divided; along the other axes of `to` all workers hold the same. A view of a value that is
/// whole has an offset, and fewer bytes. Every process calls it.
MeshValue moved(MeshWorld& from, const MeshValue& value, int64_t offset, size_t bytes,
                MeshWorld& to);

}  // namespace tn::mesh
