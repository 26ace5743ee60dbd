#include "functions/mesh_programs.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "executable/program_mesh.h"
#include "ir/body.h"
#include "ir/mesh_layout.h"
#include "ir/rewrite.h"
#include "mesh/division.h"
#include "mesh/mesh_runtime.h"
#include "ops/op_decls.h"
#include "ops/worker_parts.h"
#include "runtime/device.h"
#include "storage/weight_ranges.h"
#include "workers/world.h"

namespace tn {
namespace {

/// What is wrong with the section is said with its name.
template <class F>
auto in_section(const MeshProgramFile& from, F&& f) {
  try {
    return f();
  } catch (const UserError& e) {  // not `fail`: the place is in it already
    throw UserError(e.fault(), format("load: {}: section mesh: {}", from.file->name(), e.what()));
  }
}

/// What a section `mesh` says.
struct MeshSection {
  Mesh mesh;
  std::string text;
  std::vector<mesh::Division> divisions;  // by constant
};

MeshSection read_section(const MeshProgramFile& from) {
  std::string bytes = from.file->read(tnx::Kind::mesh);
  ByteReader in(bytes);
  MeshSection made{{}, in.read<std::string>(), {}};
  auto texts = in.read<std::vector<std::string>>();
  ByteReader::must(in.at_end(), "it goes on behind its end");
  ByteReader::must(texts.size() == from.constants.size(), "constants have no divisions");
  made.mesh = parse_mesh(made.text);
  for (size_t i = 0; i < texts.size(); ++i) {
    const NamedConstant& c = from.constants[i];
    ByteReader::must(!c.value.is_absent() || c.type->bytes() == 0, "a constant has no values");
    made.divisions.push_back(mesh::parse_division(texts[i], made.mesh, *c.type));
  }
  check_worker_functions(from.graph, made.mesh);
  return made;
}

/// Fails where the launcher has started another number of workers. Threads are made as needed.
void check_launched(const std::string& file, const MeshSection& section) {
  if (mesh::rank_of_process() < 0) return;
  int64_t launched = workers::group(workers::kWorld).size(),
          wanted = section.mesh.whole().workers();
  if (launched != wanted)
    fail(Hint{format("start as many: `tenon launch -n {} program.py`", wanted)},
         "load: {} is for {} workers, the mesh {}, but the launcher started {}", file, wanted,
         section.text, launched);
}

std::shared_ptr<Program> read_on_mesh(MeshProgramFile&& from) {
  MeshSection section = in_section(from, [&] { return read_section(from); });
  check_launched(from.file->name(), section);
  Device device = in_section(from, [&] { return device_of(section.mesh); });
  ProgramMesh place{section.text, device, {}, {}, from.file};
  mesh::MeshWorld& world = mesh::runtime().world(place.device);
  std::vector<tnx::WeightRange> held;
  for (size_t i = 0; i < from.constants.size(); ++i) {
    const NamedConstant& c = from.constants[i];
    const mesh::Division& division = *world.intern(section.divisions[i]);
    auto taken = [&](int64_t at, int64_t bytes) {
      if (bytes > 0)
        held.push_back({from.places[i] + static_cast<uint64_t>(at), static_cast<uint64_t>(bytes)});
    };
    place.constants.push_back(mesh::divided(c.value, on_device(c.type, place.device), place.device,
                                            division, mesh::Blocks::viewed, taken));
    place.divisions.push_back(mesh::to_text(section.mesh, division, c.type->rank()));
  }
  auto program = std::make_shared<Program>(std::move(from.signature), std::move(from.graph),
                                           std::move(from.constants), std::move(from.options),
                                           std::move(place));
  program->origin = "loaded";
  if (from.verify_later)
    program->verify_with(
        [file = from.file, held = std::move(held)] { tnx::verify_weights(*file, held); });
  return program;
}

constexpr MeshPrograms kMeshPrograms{read_on_mesh};

/// Before anything loads a file.
[[gnu::constructor(101)]] void install_mesh_programs() { mesh_programs = &kMeshPrograms; }

}  // namespace

std::string called_at(Loc loc) {
  std::string place = to_text(loc);
  return place.empty() ? "" : format(", called at {}", place);
}

void check_worker_functions(const Graph& graph, const Mesh& mesh) {
  for (const GraphOp& op : graph.ops) {
    for (GraphRef inner : bodies_of(op)) check_worker_functions(*inner, mesh);
    if (op.op != &ops::to_local && op.op != &ops::from_local) continue;
    const auto& a = *static_cast<const ops::WorkerPartsAttrs*>(op.attr_data());
    Mesh its = parse_mesh(a.mesh);
    if (its == mesh || its.workers() == 1) continue;
    if (mesh.axes.empty())
      fail(Hint{"compile it for that mesh, with mesh=, or without args=; or call shard_map outside "
                "of the executable",
                "compile it for that mesh, {.mesh = mesh}, or use tn::compile without input infos; "
                "or call shard_map outside of the executable"},
           "shard_map: an executable runs on one worker, and the function is for the mesh {}{}",
           a.mesh, called_at(op.loc));
    fail("shard_map: the executable is for the mesh {}, and the function for the mesh {}{}",
         to_text(mesh), a.mesh, called_at(op.loc));
  }
}

void check_can_be_saved(const Program& program) {
  const ProgramMesh* place = program.mesh();
  if (!place || place->file || mesh::rank_of_process() < 0) return;
  for (size_t i = 0; i < place->constants.size(); ++i) {
    const mesh::MeshValue& value = mesh::value_in(*place->constants[i].buffer);
    if (value.division->layout.is_whole()) continue;
    fail(Hint{"save it in a program that runs without a launcher, where workers are threads; "
              "processes can load the file"},
         "save: the weights are divided among processes: {} {}", program.constants()[i].name,
         place->divisions[i]);
  }
}

Bound kept_on_mesh(const Bound& value) {
  const mesh::MeshValue& given = mesh::value_in(*value.buffer);
  mesh::runtime().wait(*value.buffer);
  mesh::MeshValue made = given;
  for (Bound& block : made.blocks) {
    if (!block.buffer->owner) continue;
    size_t bytes = block.bytes();
    BufferRef own = allocate(bytes);
    if (bytes > 0) std::memcpy(own.data(), HostView(block).data(), bytes);
    block = {std::move(own), 0};
  }
  BufferRef buffer = mesh::make_buffer(value.buffer->device, value.buffer.bytes(), std::move(made));
  return {std::move(buffer), value.offset};
}

ProgramMesh program_mesh(const Mesh& mesh, const std::vector<NamedConstant>& constants) {
  ProgramMesh made{to_text(mesh), device_of(mesh), {}, {}, nullptr};
  for (const NamedConstant& c : constants) {
    auto bytes = static_cast<size_t>(c.type->bytes());
    const Bound& there = made.constants.emplace_back(copy_to(made.device, c.value, bytes));
    const mesh::Division& division = *mesh::value_in(*there.buffer).division;
    made.divisions.push_back(mesh::to_text(mesh, division, c.type->rank()));
  }
  return made;
}

}  // namespace tn
