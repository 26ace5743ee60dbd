// Meshes, layouts and blocks, as users see them.
#include "tenon/mesh.h"

#include <algorithm>

#include "base/environment_number.h"
#include "base/error.h"
#include "ir/emit.h"
#include "ir/place.h"
#include "mesh/division.h"
#include "mesh/mesh_defaults.h"
#include "mesh/mesh_runtime.h"
#include "mesh/shard_map.h"
#include "ops/devices.h"
#include "ops/op_decls.h"
#include "ops/shard_attrs.h"
#include "workers/world.h"

namespace tn {
namespace {

constexpr int kMostWorkers = 256;
constexpr int64_t kMostParts = int64_t{1} << 20;
std::atomic<int> chosen_workers = 0;  // 0: nobody has said

/// The workers that there must be; 0: any number of threads.
int required_workers() {
  return mesh::rank_of_process() < 0 ? 0 : workers::group(workers::kWorld).size();
}

void check_workers(int64_t count, std::string_view who) {
  int required = required_workers();
  if (required && count != required)
    fail(Hint{format("start as many: `tenon launch -n {} program.py`", count)},
         "{}: {} workers were requested, but the launcher started {}", who, count, required);
  if (count < 1 || count > kMostWorkers)
    fail("{}: the number of workers must be between 1 and {}: {}", who, kMostWorkers, count);
}

void check_size(const std::string& name, int64_t size) {
  if (size < 1 || size > kMostWorkers)
    fail("mesh: axis '{}' must have 1 to {} workers, or -1: {}", name, kMostWorkers, size);
}

void check_axis(const MeshAxis& axis) {
  bool is_word = !axis.name.empty() && axis.name.find_first_of(",+:=- ()") == std::string::npos;
  if (!is_word) fail("mesh: the name of an axis is a word: '{}'", axis.name);
  check_size(axis.name, axis.size);
  if (axis.parts < 1 || axis.parts > kMostParts || axis.parts % axis.size != 0)
    fail(Hint{"parts are a multiple of the workers"}, "mesh: axis '{}' has {} workers and {} parts",
         axis.name, axis.size, axis.parts);
}

/// Of any origin: its fields are public.
void check_mesh(const Mesh& mesh) {
  if (mesh.is_part()) return check_mesh(mesh.whole());  // the axes of a part are some of these
  if (mesh.axes.empty() || mesh.axes.size() > Mesh::kMostAxes)
    fail("mesh: a mesh must have 1 to {} axes, not {}", Mesh::kMostAxes, mesh.axes.size());
  for (int t = 0; t < mesh.count(); ++t) {
    check_axis(mesh[t]);
    if (mesh.find(mesh[t].name) != t) fail("mesh: two axes are called '{}'", mesh[t].name);
  }
  check_workers(mesh.workers(), "mesh");
}

/// The dimension that an axis can divide; -1: none.
int first_room(const Mesh& mesh, std::string_view name, const Type& type) {
  int axis = mesh.find(name);
  for (int d = 0; axis >= 0 && d < type.rank(); ++d)
    if (has_digit(type.shape[d], 1, mesh[axis].parts)) return d;
  return -1;
}

}  // namespace

ops::ShardAttrs mesh::attrs_of_spec(const ShardSpec& spec, const Mesh& mesh, const Type& type,
                                    std::string& names) {
  ops::ShardAttrs attrs;
  attrs.role = spec.stored         ? ops::ShardRole::stored
               : spec.is_parameter ? ops::ShardRole::parameter
                                   : ops::ShardRole::data;
  auto add = [&](std::string_view name, int dim) {
    bool is_known = mesh.find(name) >= 0 && dim < type.rank();
    if (is_known && type.shape[dim].is(0)) return;  // all workers hold the same: nothing
    names += (names.empty() ? "" : ",") + std::string(name);
    attrs.axes.push_back(Axis(dim));
  };
  if (spec.anywhere) {
    for (const std::string& name : spec.axes) {
      if (mesh.find(name) < 0) add(name, 0);  // an error, below
      if (int dim = first_room(mesh, name, type); dim >= 0) add(name, dim);
    }
    return attrs;
  }
  if (static_cast<int>(spec.axes.size()) > type.rank())
    fail("shard: the layout names {} dimension{}, but the tensor has {}: {}", spec.axes.size(),
         spec.axes.size() == 1 ? "" : "s", type.rank(), type);
  for (size_t d = 0; d < spec.axes.size(); ++d) {
    std::string_view rest = spec.axes[d];
    while (!rest.empty()) {
      size_t end = std::min(rest.find('+'), rest.size());
      add(rest.substr(0, end), static_cast<int>(d));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return attrs;
}

namespace {

const mesh::MeshValue* computed(const Tensor& x) {
  x.eval();
  if (!is_mesh(x.device())) return nullptr;
  const Buffer& buffer = *slot_of(x).data.load(std::memory_order_acquire);
  mesh::runtime().wait(buffer);
  return &mesh::value_in(buffer);
}

}  // namespace

static Tensor movable_between_meshes(const Tensor& x, Device device);

/// TENON_NUM_WORKERS=4: a mesh of four workers, or else the CPU.
static Device default_from_environment() {
  auto count = static_cast<int>(environment_number("TENON_NUM_WORKERS", 1, 0));
  if (count == 0) return {};
  check_workers(count, "TENON_NUM_WORKERS");
  chosen_workers = count;
  return device_of(make_mesh({{"workers", count}}));
}

void mesh::install() {
  workers::install_kernels();
  movable_to = movable_between_meshes;
  other_default_device = default_from_environment;
}

int num_workers() {
  if (int required = required_workers()) return required;
  default_device();  // which may be that of the environment
  return std::max(1, chosen_workers.load());
}

void set_workers(int count, int64_t parts) {
  check_workers(count, "workers");
  Device device = device_of(make_mesh({{"workers", count}}, parts));
  chosen_workers = count;
  set_default_device(device);
}

Mesh make_mesh(const std::vector<MeshSize>& sizes, int64_t parts) {
  int64_t known = 1, open = 0;
  for (const MeshSize& size : sizes) {
    if (size.size == -1) ++open;
    if (size.size != -1) check_size(size.name, size.size), known *= size.size;
    if (open > 1)
      fail("mesh: at most one axis may have the size -1; '{}' is the second", size.name);
    if (known > kMostWorkers)
      fail("mesh: too many workers: at least {}, the maximum is {}", known, kMostWorkers);
  }
  int64_t rest = open ? num_workers() / known : 1;
  if (open && rest * known != num_workers())
    fail("mesh: {} workers do not fill a mesh with {} along the other axes", num_workers(), known);
  Mesh made;
  for (const MeshSize& size : sizes) {
    int64_t count = size.size == -1 ? rest : size.size;
    made.axes.push_back({size.name, count, size.parts ? size.parts : parts ? parts : count});
  }
  check_mesh(made);
  return made;
}

Device device_of(const Mesh& mesh) {
  check_mesh(mesh);
  int number = mesh::runtime().number_of(mesh);
  return {mesh::kind_number(), static_cast<uint8_t>(number)};
}

bool is_mesh(Device device) { return !device.is_host() && mesh::runtime().owns(device); }

Mesh mesh_of(Device device) {
  if (!is_mesh(device)) fail("mesh: {} is not a mesh", to_text(device));
  return mesh::runtime().world(device).mesh();
}

ShardSpec stored(std::string axis) {
  ShardSpec spec;
  spec.axes.push_back(std::move(axis));
  spec.stored = spec.anywhere = true;
  return spec;
}

Tensor shard(const Tensor& x, const ShardSpec& spec, std::source_location place) {
  LocScope scope(place);
  if (mesh::mesh_of_shard_map())
    fail("shard: not allowed inside shard_map, where a tensor is already one worker's part");
  Device device = is_mesh(x.device()) ? x.device() : current_device();
  if (!is_mesh(device))
    fail(Hint{"make one: `with tn.Mesh(data=-1):`, or tn.workers(4)",
              "make one: tn::MeshScope on(tn::make_mesh({{\"data\"}})), or tn::set_workers(4)"},
         "shard: there is no mesh");
  Mesh mesh = mesh_of(device);
  std::string names;
  ops::ShardAttrs attrs = mesh::attrs_of_spec(spec, mesh, *type_of(x), names);
  attrs.mesh_axes = intern(names);
  if (type_of(x)->elements >= 0) layout_of(mesh, names, attrs.axes, *type_of(x));
  return emit(ops::shard, {x.to(device)}, attrs);
}

Tensor shard_like(const Tensor& x, const Tensor& like) {
  if (!is_mesh(like.device())) return x.to(like.device());
  if (!identical(x.shape(), like.shape()))
    fail("shard_like: {} cannot be divided as {}", *type_of(x), *type_of(like));
  const mesh::MeshValue *wanted = computed(like), *given = computed(x);
  if (given && x.device() == like.device() && given->division == wanted->division) return x;
  return mesh::divided(given ? gather(x) : x.to(Device()), like.device(), *wanted->division);
}

std::string layout(const Tensor& x) {
  const mesh::MeshValue* value = computed(x);
  std::string type = format("{}", *on_device(type_of(x), {}));
  if (!value) return format("{} on {}", type, to_text(x.device()));
  return format("{} {}", type, to_text(mesh_of(x.device()), value->division->layout, x.rank()));
}

std::vector<Tensor> blocks(const Tensor& x) {
  const mesh::MeshValue* value = computed(x);
  if (!value) return {x};
  mesh::MeshWorld& world = mesh::runtime().world(x.device());
  TypeRef type = on_device(local_type(world.mesh(), value->division->layout, type_of(x)), {});
  std::vector<Tensor> list;
  if (world.here() == 0) mesh::fail_not_here("x.local", world);
  for (int w = 0; w < world.here(); ++w) {
    const Bound& block = value->block(w);
    list.push_back(make_data(block.buffer, block.offset, type));
  }
  return list;
}

/// Whole, in every process.
static Tensor joined(const Tensor& x) {
  Tensor whole = shard(x, {});
  // To every process first: where it has no worker of a part of a mesh it can read nothing of it.
  Mesh mesh = mesh_of(x.device());
  return mesh.is_part() ? shard(whole.to(device_of(mesh.whole())), {}) : whole;
}

Tensor gather(const Tensor& x) { return is_mesh(x.device()) ? joined(x).to(Device()) : x; }

/// Between the parts of a mesh blocks go directly.
static Tensor movable_between_meshes(const Tensor& x, Device device) {
  bool is_between = is_mesh(x.device()) && is_mesh(device) && mesh::rank_of_process() >= 0;
  if (!is_between || mesh_of(x.device()).whole() == mesh_of(device).whole()) return x;
  return joined(x);
}

Tensor place(const Tensor& x, const Mesh& mesh, std::source_location place) {
  LocScope scope(place);
  return x.to(device_of(mesh));
}

}  // namespace tn
