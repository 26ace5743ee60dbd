#pragma once
// What a tensor on a mesh holds: a block for every worker of this process, and its layout.
#include <vector>

#include "base/function_ref.h"
#include "ir/mesh_layout.h"
#include "runtime/buffer.h"
#include "runtime/transport.h"

namespace tn::mesh {

/// How a tensor is divided among workers. Equal ones of a mesh are one object, for the
/// life of the process.
struct Division {
  Layout layout;
  uint32_t parameters = 0;  // axes of the mesh that parameters brought
  friend bool operator==(const Division&, const Division&) = default;
};

struct MeshValue {
  const Division* division = nullptr;  // null: it has not been written
  Shape shape;                         // of what is divided
  int64_t element_bytes = 0;
  std::vector<Bound> blocks;    // one serves all workers: they hold the same, or there is one
  bool is_lost = false;         // a run that failed had taken its memory
  workers::Origin origin = {};  // of processes: how it was made

  const Bound& block(int worker) const {
    return blocks[blocks.size() == 1 ? 0 : static_cast<size_t>(worker)];
  }
};

/// A buffer that holds such a value, and the value in it.
BufferRef make_buffer(Device device, size_t bytes, MeshValue value);
MeshValue& value_in(const Buffer& buffer);

/// The coordinate of a worker along an axis.
int64_t coordinate(const Mesh& mesh, int64_t worker, int axis);

/// The number of a worker in the mesh that this one is a part of.
int64_t number_in_whole(const Mesh& mesh, int64_t worker);
/// The worker of a part of a mesh that has this number there; -1: none.
int64_t worker_of_part(const Mesh& mesh, int64_t number);

/// Calls `copy` for each run of bytes that a worker holds: where they are in the whole and in the
/// block.
void for_each_run(const Mesh& mesh, const MeshValue& value, int64_t worker,
                  FunctionRef<void(int64_t whole, int64_t block, int64_t bytes)> copy);

}  // namespace tn::mesh
