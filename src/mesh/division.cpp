#include "mesh/division.h"

#include <cstring>

#include "base/error.h"
#include "ir/node.h"
#include "mesh/mesh_runtime.h"
#include "tenon/mesh.h"

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
  MeshWorld& there = runtime().world(device);
  x.eval();
  Bound whole = bound_of(slot_of(x));
  TypeRef type = on_device(type_of(x), device);
  MeshValue value{&division, type->shape, static_cast<int64_t>(size_of(type->dtype)), {}};
  if (division.layout.is_whole()) value.blocks.push_back(whole);
  TypeRef local = local_type(there.mesh(), division.layout, type);
  const char* source = static_cast<const char*>(host_address(*whole.buffer)) + whole.offset;
  for (int w = 0; w < there.here() && !division.layout.is_whole(); ++w) {
    Bound block{allocate(static_cast<size_t>(local->bytes())), 0};
    auto* target = static_cast<char*>(host_address(*block.buffer));
    for_each_run(there.mesh(), value, there.first() + w,
                 [&](int64_t from, int64_t to, int64_t count) {
                   std::memcpy(target + to, source + from, static_cast<size_t>(count));
                 });
    value.blocks.push_back(std::move(block));
  }
  auto bytes = static_cast<size_t>(type->bytes());
  return make_data(make_buffer(device, bytes, std::move(value)), 0, type);
}

std::string placement(const Tensor& x) {
  x.eval();
  const Mesh& mesh = runtime().world(x.device()).mesh();
  const MeshValue& value = value_in(*slot_of(x).data.load(std::memory_order_acquire));
  std::string text =
      format("mesh({}) {}", to_text(mesh), to_text(mesh, value.division->layout, x.rank()));
  std::vector<std::string_view> parameters;
  for (int t = 0; t < mesh.count(); ++t)
    if (value.division->parameters >> t & 1) parameters.push_back(mesh[t].name);
  if (!parameters.empty()) text += format(" parameters({})", join(parameters, ","));
  return text;
}

Tensor placed(const Tensor& x, std::string_view text) {
  constexpr std::string_view kMesh = "mesh(", kParameters = " parameters(";
  size_t end = text.find(") ");
  if (!text.starts_with(kMesh) || end == text.npos)
    fail("pickle: invalid mesh placement: '{}'", text);
  Mesh mesh = parse_mesh(text.substr(kMesh.size(), end - kMesh.size()));
  Device device = device_of(mesh);
  std::string_view layout = text.substr(end + 2), names;
  if (size_t at = layout.find(kParameters); at != layout.npos) {
    names = layout.substr(at + kParameters.size());
    names.remove_suffix(names.ends_with(')'));
    layout = layout.substr(0, at);
  }
  Division division{parse_layout(layout, mesh, *type_of(x)), 0};
  if (division.layout.partial) fail("pickle: invalid mesh placement: '{}'", text);
  for (int t = 0; t < mesh.count(); ++t) {
    size_t at = names.find(mesh[t].name), after = at + mesh[t].name.size();
    bool is_named = at != names.npos && (at == 0 || names[at - 1] == ',') &&
                    (after == names.size() || names[after] == ',');
    if (is_named) division.parameters |= 1u << t;
  }
  return divided(x, device, *runtime().world(device).intern(std::move(division)));
}

}  // namespace tn::mesh

namespace tn {

Tensor map_blocks(const Tensor& x, const std::function<Tensor(const Tensor&)>& f) {
  x.eval();
  const mesh::MeshValue& like = mesh::value_in(*slot_of(x).data.load(std::memory_order_acquire));
  if (like.division->layout.is_whole()) return f(x);
  std::vector<Tensor> made;
  for (const Tensor& block : blocks(x)) made.push_back(f(block));
  eval(made);
  TypeRef type = intern({made[0].dtype(), type_of(x)->shape, x.device()});
  mesh::MeshValue value{like.division, type->shape, static_cast<int64_t>(size_of(type->dtype)), {}};
  for (const Tensor& block : made) value.blocks.push_back(mesh::bound_of(slot_of(block)));
  auto bytes = static_cast<size_t>(type->bytes());
  return make_data(mesh::make_buffer(x.device(), bytes, std::move(value)), 0, type);
}

}  // namespace tn
