#pragma once
// Meshes: workers in a grid, over which tensors are divided. A mesh is a device: its tensors hold a
// block for every worker, and ops on them run on all workers.
//
//     tn::Mesh mesh = tn::make_mesh({{"data", 4}});
//     tn::MeshScope on(mesh);                          // new tensors lie on it
//     tn::Tensor x = tn::shard(tn::randn({1024, 64}), "data");
//     std::string text = tn::layout(x);                // "f32[1024,64] @[data,-]"
#include <functional>
#include <initializer_list>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/device.h"
#include "tenon/tensor.h"

namespace tn {

/// A named axis of a mesh.
struct MeshAxis {
  std::string name;
  int64_t size = 1;   // workers along the axis
  int64_t parts = 1;  // into which folds are dealt: a multiple of `size`
  int64_t parts_per_worker() const { return parts / size; }
  friend bool operator==(const MeshAxis&, const MeshAxis&) = default;
};

/// Workers in a grid. Worker numbers are row-major in the coordinates.
struct Mesh {
  static constexpr int kMostAxes = 8;
  std::vector<MeshAxis> axes;
  /// Of a part of a mesh: the axes of the whole mesh, and for each where along it the part is, or
  /// -1 where it is one of the part's own axes.
  std::vector<MeshAxis> whole_axes = {};
  std::vector<int64_t> fixed = {};

  int count() const { return static_cast<int>(axes.size()); }
  const MeshAxis& operator[](int axis) const { return axes[static_cast<size_t>(axis)]; }
  int64_t workers() const;
  /// The number of the axis of this name; -1 when there is none.
  int find(std::string_view name) const;

  /// The workers with this coordinate along an axis, as a mesh of the other axes: a stage of a
  /// pipeline. Without other axes it is one worker.
  Mesh at(std::string_view axis, int64_t coordinate) const;
  bool is_part() const { return !whole_axes.empty(); }
  /// The mesh that this is a part of, or else the mesh itself.
  Mesh whole() const;
  friend bool operator==(const Mesh&, const Mesh&) = default;
};

/// "data=4, model=2:8": names, sizes, and parts where they are not the sizes. Of a part of a mesh
/// "data=2 at stage=0 of stage=2, data=2".
std::string to_text(const Mesh& mesh);

/// The size of an axis in make_mesh. -1, at most once: all workers that are left.
struct MeshSize {
  std::string name;
  int64_t size = -1;
  int64_t parts = 0;  // 0: those of the mesh
};

/// A mesh of the workers of this program: its processes under `tenon launch`, or else threads.
/// Sums over a divided dimension are dealt into `parts` along every axis, which decide the bits:
/// meshes with equal parts compute equal bits. 0: as many as there are workers.
Mesh make_mesh(const std::vector<MeshSize>& sizes, int64_t parts = 0);

/// The device that a mesh is, and the mesh that a device is. Fails if it is none.
Device device_of(const Mesh& mesh);
Mesh mesh_of(Device device);
bool is_mesh(Device device);

/// New tensors of this thread lie on the mesh until the end of the scope.
class MeshScope {
 public:
  explicit MeshScope(const Mesh& mesh) : scope_(device_of(mesh)) {}

 private:
  DeviceScope scope_;
};

/// From now on new tensors lie on a mesh of `count` workers with one axis, "workers", of so many
/// parts (see make_mesh). TENON_NUM_WORKERS does the same at the start.
void set_workers(int count, int64_t parts = 0);
/// The number of workers there are: of the launcher, of `set_workers(n)`, or 1.
int num_workers();

/// How a tensor is divided: an axis of the mesh for each dimension, "" for none, several from the
/// outermost joined by "+". Dimensions behind the last are whole.
struct ShardSpec {
  std::vector<std::string> axes;
  bool stored = false;        // divided in memory only: ops gather it where they use it
  bool is_parameter = false;  // spreads after the layouts of data
  bool anywhere = false;      // the one axis divides the first dimension that it can

  ShardSpec() = default;
  ShardSpec(std::vector<std::string> names) : axes(std::move(names)) {}
  ShardSpec(std::initializer_list<const char*> names) : axes(names.begin(), names.end()) {}
  ShardSpec(const char* name) : axes{name} {}  // of dimension 0
};
/// Divided in memory only, along the first dimension that the axis divides.
ShardSpec stored(std::string axis);

/// `x` on the mesh it lies on, or on that of the scope, divided as `spec` says. Values do not
/// change. Fails if an extent cannot be divided.
Tensor shard(const Tensor& x, const ShardSpec& spec,
             std::source_location place = std::source_location::current());

/// `x` on the mesh of `like`, divided as that is; on its device, if that is no mesh. Computes both.
/// If blocks must be exchanged between processes, all workers must call it.
Tensor shard_like(const Tensor& x, const Tensor& like);

/// A tensor divided as `x`. `f`, which keeps the shape, makes its blocks of those of `x`, on the
/// host; of a tensor that is whole it makes the tensor.
Tensor map_blocks(const Tensor& x, const std::function<Tensor(const Tensor& block)>& f);

/// `x` on a mesh, a part of one, or another device: x.to(device). See place in
/// tenon/nn/pipeline_stages.h for modules.
Tensor place(const Tensor& x, const Mesh& mesh,
             std::source_location place = std::source_location::current());

/// How a tensor is divided: "f32[1024,64] @[data,-]". Computes it first.
std::string layout(const Tensor& x);

/// The blocks of a tensor on a mesh that this process holds, on the host: one for every worker that
/// is a thread, or that of this process.
std::vector<Tensor> blocks(const Tensor& x);
/// The whole tensor on the host, on every worker. All workers of the mesh must call it.
Tensor gather(const Tensor& x);

}  // namespace tn
