#pragma once
// Executables for meshes: what of a traced graph belongs to the mesh, and the constants there.
#include "executable/program.h"
#include "ir/place.h"
#include "tenon/mesh.h"

namespace tn {

/// The mesh with the values of constants, which are those of `constants` where they lie there.
ProgramMesh program_mesh(const Mesh& mesh, const std::vector<NamedConstant>& constants);

/// A value of the mesh as an executable keeps it: memory of others may change later.
Bound kept_on_mesh(const Bound& value);

/// "called at model.py:8, in f"; "" where the line is not known.
std::string called_at(Loc loc);

/// Fails where no process has the whole of a constant.
void check_can_be_saved(const Program& program);

/// Fails where a shard_map in the graph is not for this mesh.
void check_worker_functions(const Graph& graph, const Mesh& mesh);

}  // namespace tn
