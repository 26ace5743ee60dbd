#pragma once
// Library kernels: ops that a backend computes by handwritten code instead of loop nests. A table
// of the backend says which ops it has kernels for (backend/cpu/library/).
#include "ir/opdef.h"
#include "plan/target.h"

namespace tn {

struct KernelTile;

/// What a library kernel is called with.
struct LibraryCall {
  const void* attrs;
  Types in_types, out_types;
  const void* const* in;
  void* const* out;
  void* room = nullptr;  // for the time of the call
};

// Kernels that take operands where they lie, make their result block by block and let others work
// on finished blocks.

/// What is done with a finished block of the result, on the thread that made it.
struct TileWork {
  void (*run)(const void* data, const KernelTile& tile) = nullptr;
  const void* data = nullptr;
};

/// Memory for the time of a call, in pieces that need not lie together: copies of both operands,
/// and what the kernels pack of each. A piece that is null is allocated.
struct TileRoom {
  static constexpr int kPieces = 4;
  int64_t bytes[kPieces] = {};
  void* at[kPieces] = {};
};

struct TiledCall {
  const void* attrs;
  Types in_types, out_types;
  std::span<const Strided> in_at;  // where the elements of each operand lie
  const void* const* in;           // where each operand's buffer begins; null: only sizes are asked
  void* out;
  const void* packed = nullptr;  // the second operand as `pack` left it
  TileRoom room = {};
  TileWork work = {};
};

/// The result in row-major order is batch × rows × columns.
struct TileDomain {
  Dim batch = 1, rows = 1, columns = 1;
};

/// The order that `pack` brings elements in. What a number means is known to the backend alone;
/// files keep it.
using PackedLayout = uint8_t;

struct TiledForm {
  TileDomain (*domain)(const void* attrs, Types in, Types out);
  void (*run)(const TiledCall& call);
  /// For a call whose `in` is null. Null: it needs little.
  TileRoom (*room)(const TiledCall& call) = nullptr;

  /// The second operand, packed ahead of time; all null: it never is.
  struct Packing {
    PackedLayout (*layout)();                 // of what `pack` writes on this machine
    int64_t (*bytes)(const TiledCall& call);  // 0 where it does not pay
    void (*pack)(const TiledCall& call, void* out);
    /// The inverse of `pack` in any layout: writes the operand, whose first element is at `out`,
    /// with the strides of `call`. False, and nothing useful is written, where `packed` is too
    /// short or does not hold all of it; a null `out` only asks.
    bool (*unpack)(const TiledCall& call, PackedLayout layout, std::span<const std::byte> packed,
                   void* out);
  };
  const Packing* packing = nullptr;
};

struct LibraryKernel {
  const OpDef* op;
  void (*run)(const LibraryCall& call);
  bool (*claims)(Types in) = nullptr;  // operands that it computes; null: all that the op takes
  const TiledForm* tiled = nullptr;
  int64_t (*room)(const LibraryCall& call) = nullptr;  // bytes of it, asked with no addresses
  bool beats_loops = false;  // on this target it is faster than the op's loop nest, fused or not
  bool only_checks = false;  // it fails where operands are wrong; the op's loop nest computes
};

/// The kernel that the backend of `target` has for an op on operands of these types; null: none.
const LibraryKernel* library_kernel(const OpDef& op, Types in, const Target& target);
/// Its tiled form, if it has one.
inline const TiledForm* tiled_form(const OpDef& op, Types in, const Target& target) {
  const LibraryKernel* kernel = library_kernel(op, in, target);
  return kernel ? kernel->tiled : nullptr;
}

}  // namespace tn
