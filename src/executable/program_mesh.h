#pragma once
// Programs for meshes of workers. What divides and runs them is installed by the whole library:
// libtenon_rt has none of it, and refuses their files.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "executable/program.h"

namespace tn {

/// What a file says about such a program, before its section `mesh` was read.
struct MeshProgramFile {
  std::shared_ptr<const tnx::File> file;
  Signature signature;
  Graph graph;
  std::vector<NamedConstant> constants;
  std::vector<uint64_t> places;  // of the constants among the weights
  CompileOptions options;
  bool verify_later = false;  // weights, when they are first used
};

struct MeshPrograms {
  std::shared_ptr<Program> (*read)(MeshProgramFile&& from);
};

/// Null in the runtime library. The whole one sets it when it is loaded.
extern const MeshPrograms* mesh_programs;

}  // namespace tn
