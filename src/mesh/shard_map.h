#pragma once
// The mesh of the shard_map whose function this thread calls, and layouts as attributes.
#include <string>

#include "base/function_ref.h"
#include "ir/type.h"
#include "ops/shard_attrs.h"
#include "tenon/shard_map.h"

namespace tn::mesh {

/// Null: there is none.
const Mesh* mesh_of_shard_map();

/// As flat::call_on_workers. Results with a name, such as "mean of a BatchNorm", are state. What no
/// axis divides must be equal on all workers, as far as that can be seen without values.
Tensors call_on_workers(const Function& f, const Tensors& args, const Mesh& mesh,
                        const ShardSpecs& in_specs, FunctionRef<ShardSpecs()> out_specs,
                        FunctionRef<std::string(size_t result)> name_of_state);

/// The attributes of `shard` for a layout; `names` receives the axes of the mesh.
ops::ShardAttrs attrs_of_spec(const ShardSpec& spec, const Mesh& mesh, const Type& type,
                              std::string& names);

}  // namespace tn::mesh
