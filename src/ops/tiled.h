#pragma once
// Ops whose kernels make their result block by block and let others work on finished blocks.
#include "ir/opdef.h"
#include "runtime/cpu_level.h"
#include "runtime/native.h"

namespace tn::ops {

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

struct TiledForm {
  TileDomain (*domain)(const void* attrs, Types in, Types out);
  void (*run)(const TiledCall& call);
  /// Bytes of the second operand packed ahead of time; 0 where that does not pay.
  int64_t (*packed_bytes)(const TiledCall& call);
  void (*pack)(const TiledCall& call, void* out);
  /// For a call whose `in` is null. Null: it needs little.
  TileRoom (*room)(const TiledCall& call) = nullptr;
  /// The inverse of `pack` with the kernels of `level`: writes the second operand, whose first
  /// element is at `out`, with the strides of `call`. False, and nothing useful is written, where
  /// `packed` is too short or does not hold all of it; a null `out` only asks.
  bool (*unpack)(const TiledCall& call, CpuLevel level, std::span<const std::byte> packed,
                 void* out) = nullptr;
};

extern const TiledForm tiled_attention, tiled_conv, tiled_dot;

/// Null for ops that have no such kernel for these element types.
const TiledForm* tiled_form(const OpDef& op, Types in);

}  // namespace tn::ops
