#pragma once
// The mesh of the shard_map whose function this thread calls, and layouts as attributes.
#include <string>

#include "ir/type.h"
#include "ops/shard_attrs.h"
#include "tenon/mesh.h"

namespace tn::mesh {

/// Null: there is none.
const Mesh* mesh_of_shard_map();

/// The attributes of `shard` for a layout; `names` receives the axes of the mesh.
ops::ShardAttrs attrs_of_spec(const ShardSpec& spec, const Mesh& mesh, const Type& type,
                              std::string& names);

}  // namespace tn::mesh
