#include "mesh/division.h"

#include <cstring>

#include "base/error.h"
#include "base/hash.h"
#include "ir/node.h"
#include "mesh/mesh_runtime.h"
#include "mesh/origins.h"
#include "tenon/mesh.h"
#include "tenon/ops.h"

namespace tn::mesh {
namespace {

/// Where a computed value is.
Bound bound_of(const Slot& slot) {
  Buffer* buffer = slot.data.load(std::memory_order_acquire);
  buffer->refs.fetch_add(1, std::memory_order_relaxed);
  return {BufferRef::adopt_reference(buffer), slot.offset};
}

}  // namespace

Tensor divided(const Tensor& x, Device device, const Division& division) {
  x.eval();
  TypeRef type = on_device(type_of(x), device);
  Bound made = divided(bound_of(slot_of(x)), type, device, division, Blocks::copied,
                       [](int64_t, int64_t) {});
  return make_data(std::move(made.buffer), 0, type);
}

Bound divided(const Bound& whole, TypeRef type, Device device, const Division& division,
              Blocks blocks, FunctionRef<void(int64_t from, int64_t bytes)> taken) {
  MeshWorld& there = runtime().world(device);
  MeshValue value{&division, type->shape, static_cast<int64_t>(size_of(type->dtype)), {}};
  auto bytes = static_cast<size_t>(type->bytes());
  if (!there.is_threads())
    value.origin =  // of a file each process shall read little but its own part
        origin_of(static_cast<const char*>(host_address(*whole.buffer)) + whole.offset, bytes,
                  blocks == Blocks::viewed ? kFewSamples : kSamples);
  if (division.layout.is_whole()) {
    value.blocks.push_back(whole);
    taken(0, type->bytes());
    return {make_buffer(device, bytes, std::move(value)), 0};
  }
  int64_t own = local_type(there.mesh(), division.layout, type)->bytes();
  const char* source = static_cast<const char*>(host_address(*whole.buffer)) + whole.offset;
  for (int w = 0; w < there.here(); ++w) {
    Bound block;
    auto take = [&](int64_t from, int64_t to, int64_t count) {
      taken(from, count);
      if (blocks == Blocks::viewed && count == own) {
        block = {whole.buffer, whole.offset + from};
        return;
      }
      if (!block.buffer) block = {allocate(static_cast<size_t>(own)), 0};
      auto* target = static_cast<char*>(host_address(*block.buffer));
      std::memcpy(target + to, source + from, static_cast<size_t>(count));
    };
    for_each_run(there.mesh(), value, there.first() + w, take);
    if (!block.buffer) block = {allocate(static_cast<size_t>(own)), 0};  // of no elements
    value.blocks.push_back(std::move(block));
  }
  return {make_buffer(device, bytes, std::move(value)), 0};
}

std::string to_text(const Mesh& mesh, const Division& division, int rank) {
  std::string text = to_text(mesh, division.layout, rank);
  std::vector<std::string_view> parameters;
  for (int t = 0; t < mesh.count(); ++t)
    if (division.parameters >> t & 1) parameters.push_back(mesh[t].name);
  if (!parameters.empty()) text += format(" parameters({})", join(parameters, ","));
  return text;
}

Division parse_division(std::string_view text, const Mesh& mesh, const Type& type) {
  constexpr std::string_view kParameters = " parameters(";
  std::string_view layout = text, names;
  if (size_t at = layout.find(kParameters); at != layout.npos) {
    names = layout.substr(at + kParameters.size());
    names.remove_suffix(names.ends_with(')'));
    layout = layout.substr(0, at);
  }
  Division division{parse_layout(layout, mesh, type), 0};
  if (division.layout.partial) fail("layout: a tensor in memory is not partial: '{}'", text);
  while (!names.empty()) {
    size_t end = std::min(names.find(','), names.size());
    int axis = mesh.find(names.substr(0, end));
    if (axis < 0) fail("layout: the mesh has no axis '{}': '{}'", names.substr(0, end), text);
    division.parameters |= 1u << axis;
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return division;
}

std::string placement(const Tensor& x) {
  x.eval();
  const Mesh& mesh = runtime().world(x.device()).mesh();
  const MeshValue& value = value_in(*slot_of(x).data.load(std::memory_order_acquire));
  return format("mesh({}) {}", to_text(mesh), to_text(mesh, *value.division, x.rank()));
}

Tensor placed(const Tensor& x, std::string_view text) {
  constexpr std::string_view kMesh = "mesh(";
  size_t end = text.find(") ");
  if (!text.starts_with(kMesh) || end == text.npos)
    fail("pickle: invalid mesh placement: '{}'", text);
  Mesh mesh = parse_mesh(text.substr(kMesh.size(), end - kMesh.size()));
  Device device = device_of(mesh);
  Division division = parse_division(text.substr(end + 2), mesh, *type_of(x));
  return divided(x, device, *runtime().world(device).intern(std::move(division)));
}

}  // namespace tn::mesh

namespace tn {

Tensor map_blocks(const Tensor& x, const std::function<Tensor(const Tensor&)>& f) {
  x.eval();
  const mesh::MeshValue& like = mesh::value_in(*slot_of(x).data.load(std::memory_order_acquire));
  if (like.division->layout.is_whole()) return f(x);
  mesh::MeshWorld& world = mesh::runtime().world(x.device());
  std::vector<Tensor> made;
  if (world.here() == 0) {  // for its element type
    TypeRef local = local_type(world.mesh(), like.division->layout, type_of(x));
    made.push_back(f(zeros(local->shape, local->dtype, Device())));
  } else {
    for (const Tensor& block : blocks(x)) made.push_back(f(block));
    eval(made);
  }
  TypeRef type = intern({made[0].dtype(), type_of(x)->shape, x.device()});
  mesh::MeshValue value{like.division, type->shape, static_cast<int64_t>(size_of(type->dtype)), {}};
  value.origin = like.origin;
  for (uint64_t* ops : {&value.origin.ops, &value.origin.traced_ops})
    *ops = combine(*ops, hash_text("map_blocks"));
  for (size_t i = 0; i < made.size() && world.here() > 0; ++i)
    value.blocks.push_back(mesh::bound_of(slot_of(made[i])));
  auto bytes = static_cast<size_t>(type->bytes());
  return make_data(mesh::make_buffer(x.device(), bytes, std::move(value)), 0, type);
}

}  // namespace tn
