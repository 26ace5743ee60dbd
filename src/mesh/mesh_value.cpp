#include "mesh/mesh_value.h"

#include <algorithm>

namespace tn::mesh {

BufferRef make_buffer(Device device, size_t bytes, MeshValue value) {
  auto* owned = new MeshValue(std::move(value));
  auto release = [](void* owner) { delete static_cast<MeshValue*>(owner); };
  // Of no bytes, `adopt` would release the owner at once.
  BufferRef made = adopt(owned, std::max<size_t>(bytes, 1), owned, release, false);
  made->bytes = bytes, made->device = device;
  return made;
}

MeshValue& value_in(const Buffer& buffer) { return *static_cast<MeshValue*>(buffer.address); }

int64_t coordinate(const Mesh& mesh, int64_t worker, int axis) {
  for (int u = mesh.count() - 1; u > axis; --u) worker /= mesh[u].size;
  return worker % mesh[axis].size;
}

int64_t number_in_whole(const Mesh& mesh, int64_t worker) {
  int64_t number = 0;
  for (size_t t = 0, own = 0; t < mesh.fixed.size(); ++t) {
    bool is_fixed = mesh.fixed[t] >= 0;
    int64_t at = is_fixed ? mesh.fixed[t] : coordinate(mesh, worker, static_cast<int>(own++));
    number = number * mesh.whole_axes[t].size + at;
  }
  return mesh.is_part() ? number : worker;
}

int64_t worker_of_part(const Mesh& mesh, int64_t number) {
  if (!mesh.is_part()) return number;
  const Mesh whole = mesh.whole();
  int64_t worker = 0;
  for (int t = 0; t < whole.count(); ++t) {
    int64_t at = coordinate(whole, number, t), fixed = mesh.fixed[static_cast<size_t>(t)];
    if (fixed >= 0 && fixed != at) return -1;
    if (fixed < 0) worker = worker * whole[t].size + at;
  }
  return worker;
}

namespace {

/// A digit of the elements' positions. Those of workers are fixed in a block.
struct DigitLoop {
  int64_t extent, whole = 0, block = 0;  // steps, in bytes
  int axis = -1;                         // of the mesh, if workers have it
};

/// Row-major, the outermost first.
std::vector<DigitLoop> digits_of(const Mesh& mesh, const MeshValue& value) {
  std::vector<DigitLoop> loops;
  const Layout& layout = value.division->layout;
  for (int d = 0; d < value.shape.rank(); ++d) {
    std::vector<int> here;
    for (int t = 0; t < mesh.count(); ++t)
      if (layout[t].dim == d) here.push_back(t);
    std::ranges::sort(here, {}, [&](int t) { return layout[t].radix; });
    int64_t in_front = 1;
    for (int t : here) {
      loops.push_back({layout[t].radix / in_front});
      loops.push_back({mesh[t].size, 0, 0, t});
      in_front = layout[t].radix * mesh[t].size;
    }
    loops.push_back({value.shape[d].value() / in_front});
  }
  int64_t whole = value.element_bytes, block = whole;
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
    loop->whole = whole, loop->block = loop->axis < 0 ? block : 0;
    whole *= loop->extent;
    if (loop->axis < 0) block *= loop->extent;
  }
  return loops;
}

}  // namespace

void for_each_run(const Mesh& mesh, const MeshValue& value, int64_t worker,
                  FunctionRef<void(int64_t whole, int64_t block, int64_t bytes)> copy) {
  std::vector<DigitLoop> loops = digits_of(mesh, value);
  int64_t bytes = value.element_bytes, whole = 0, block = 0;
  while (!loops.empty() && loops.back().axis < 0) bytes *= loops.back().extent, loops.pop_back();
  for (const DigitLoop& loop : loops)
    if (loop.axis >= 0) whole += coordinate(mesh, worker, loop.axis) * loop.whole;
  std::erase_if(loops, [](const DigitLoop& loop) { return loop.axis >= 0; });
  if (bytes == 0 || std::ranges::any_of(loops, [](auto& loop) { return loop.extent == 0; })) return;
  std::vector<int64_t> at(loops.size());
  for (;;) {
    copy(whole, block, bytes);
    size_t k = loops.size();
    for (; k > 0; --k) {
      const DigitLoop& loop = loops[k - 1];
      whole += loop.whole, block += loop.block;
      if (++at[k - 1] < loop.extent) break;
      whole -= loop.extent * loop.whole, block -= loop.extent * loop.block;
      at[k - 1] = 0;
    }
    if (k == 0) return;
  }
}

}  // namespace tn::mesh
