#include "mesh/moving.h"

#include <algorithm>
#include <cstring>

#include "backend/launcher.h"
#include "base/error.h"
#include "runtime/device.h"
#include "workers/worker_watch.h"
#include "workers/world.h"

namespace tn::mesh {
namespace {

char* bytes_of(const Bound& block) {
  return static_cast<char*>(host_address(*block.buffer)) + block.offset;
}

/// One value on its way.
class Moving {
 public:
  Moving(MeshWorld& from, const MeshValue& value, int64_t offset, size_t bytes, MeshWorld& to)
      : from_(from), to_(to), value_(value), offset_(offset), bytes_(bytes) {
    made_ = {
        moved_division(from.mesh(), *value.division, to), value.shape, value.element_bytes, {}};
    made_.origin = {.ops = value.origin.ops};  // each process may have values of its own there
    invariant(offset == 0 || value.division->layout.is_whole(),
              "mesh: a view into a divided tensor");
    block_bytes_ = bytes;
    for (int t = 0; t < from.mesh().count(); ++t)
      if (value.division->layout[t]) block_bytes_ /= static_cast<size_t>(from.mesh()[t].size);
  }

  MeshValue run() {
    for (int64_t w = 0; w < to_.mesh().workers(); ++w) take(w);
    return std::move(made_);
  }

 private:
  /// Whether this process runs a worker of a mesh.
  static bool is_here(const MeshWorld& world, int64_t worker) {
    return world.is_threads() || world.first() == worker;
  }
  const Bound& given(int64_t worker) const {
    return value_.block(static_cast<int>(from_.is_threads() ? worker : 0));
  }

  /// The workers whose blocks make that of worker `to`: one, or several where the value is divided
  /// along an axis that its target does not have. Of replicas it is the one that is `to` itself, or
  /// else the first.
  std::vector<int64_t> sources(int64_t to) const {
    const Mesh& mesh = from_.mesh();
    int64_t number = number_in_whole(to_.mesh(), to);
    Mesh whole = mesh.whole();
    std::vector<int64_t> found{0};
    for (int t = 0; t < mesh.count(); ++t) {
      bool is_joined = value_.division->layout[t] && to_.mesh().find(mesh[t].name) < 0;
      int64_t own = coordinate(whole, number, whole.find(mesh[t].name));
      std::vector<int64_t> longer;
      for (int64_t prefix : found)
        for (int64_t k = is_joined ? 0 : own; k < (is_joined ? mesh[t].size : own + 1); ++k)
          longer.push_back(prefix * mesh[t].size + k);
      found = std::move(longer);
    }
    return found;
  }

  /// The block of a worker of the target: all of its source's, or cut from those of several.
  void take(int64_t to) {
    std::vector<int64_t> list = sources(to);
    if (list.size() == 1) {
      Bound block = fetch(list[0], to);
      if (is_here(to_, to)) made_.blocks.push_back(std::move(block));
      return;
    }
    Bound joined, own;
    if (is_here(to_, to)) {
      joined = {allocate(bytes_), 0};
      own = {allocate(block_bytes_of_target()), 0};
    }
    for (int64_t source : list) {
      Bound block = fetch(source, to);
      if (!is_here(to_, to)) continue;
      for_each_run(from_.mesh(), value_, source, [&](int64_t whole, int64_t at, int64_t count) {
        std::memcpy(bytes_of(joined) + whole, bytes_of(block) + at, static_cast<size_t>(count));
      });
    }
    if (!is_here(to_, to)) return;
    for_each_run(to_.mesh(), made_, to, [&](int64_t whole, int64_t at, int64_t count) {
      std::memcpy(bytes_of(own) + at, bytes_of(joined) + whole, static_cast<size_t>(count));
    });
    made_.blocks.push_back(std::move(own));
  }

  size_t block_bytes_of_target() const {
    size_t bytes = bytes_;
    for (int t = 0; t < to_.mesh().count(); ++t)
      if (made_.division->layout[t]) bytes /= static_cast<size_t>(to_.mesh()[t].size);
    return bytes;
  }

  /// The block of a source where worker `to` is. In other processes it sends, or does nothing.
  /// Every process comes to the messages in the same order, so none waits for a later one.
  Bound fetch(int64_t source, int64_t to) {
    bool is_mine = is_here(from_, source), is_wanted = is_here(to_, to);
    auto sender = static_cast<int>(number_in_whole(from_.mesh(), source));
    auto receiver = static_cast<int>(number_in_whole(to_.mesh(), to));
    Bound block;
    if (is_mine) block = given(source), block.offset += offset_;
    if (from_.is_threads() || sender == receiver || is_mine == is_wanted) return block;
    workers::Transport& world = workers::group(workers::kWorld);
    workers::CollectiveCall message{.kind = workers::Collective::send,
                                    .element = Element::u8,
                                    .count = static_cast<int64_t>(block_bytes_),
                                    .run = run_of_parts,
                                    .origin = value_.origin};
    if (is_mine) {
      message.peer = receiver, message.in = bytes_of(block);
      transfer(message, [&] { world.send(message); });
      return {};
    }
    block = {allocate(block_bytes_), 0};
    message.kind = workers::Collective::recv, message.peer = sender, message.out = bytes_of(block);
    transfer(message, [&] { world.receive(message); });
    return block;
  }

  /// Its time is time of a worker, as that of the runs before and after it.
  static void transfer(const workers::CollectiveCall& message, FunctionRef<void()> work) {
    uint64_t began = workers::workers_are_watched() ? event_time() : 0;
    watched(workers::kWorld, 2, message, work);
    if (began) workers::totals_of(worker_now()).running += event_time() - began;
  }

  MeshWorld &from_, &to_;
  const MeshValue& value_;
  int64_t offset_;
  size_t bytes_, block_bytes_;
  MeshValue made_;
};

}  // namespace

const Division* moved_division(const Mesh& from, const Division& division, MeshWorld& to) {
  const Mesh& mesh = to.mesh();
  Division made{Layout(mesh), 0};
  for (int t = 0; t < mesh.count(); ++t) {
    int there = from.find(mesh[t].name);
    if (there < 0) continue;
    made.layout[t] = division.layout[there];
    made.layout.stored |= static_cast<uint32_t>(division.layout.is_stored(there)) << t;
    made.parameters |= (division.parameters >> there & 1) << t;
  }
  return to.intern(std::move(made));
}

MeshValue moved(MeshWorld& from, const MeshValue& value, int64_t offset, size_t bytes,
                MeshWorld& to) {
  return Moving(from, value, offset, bytes, to).run();
}

}  // namespace tn::mesh
