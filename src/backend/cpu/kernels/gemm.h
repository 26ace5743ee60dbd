#pragma once
// Matrix products of every element type.
#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/cpu/cpu_level.h"
#include "runtime/element_kind.h"

namespace tn {

struct KernelTile;

/// Called once for every block of C right after its last addition, on the thread that made it,
/// while it lies in cache. It may rewrite C in place or write elsewhere; blocks run at once on all
/// threads.
struct GemmEpilogue {
  void (*run)(const void* data, const KernelTile& tile) = nullptr;
  const void* data = nullptr;
};

/// C = A·B for `batch` pairs of an m×k and a k×n matrix. Strides count elements; those of A and B
/// may be zero or negative. The rows of C are contiguous.
///
/// Each element of C is a chain of fused multiply-adds with ascending k, restarted at K blocks that
/// depend on k alone (loop/reduction_tree.h), so the bits depend on the values and k only: not on
/// strides, threads or level. f16 and bf16 are multiplied and summed in f32 and rounded once;
/// integers wrap; booleans are or-and. One exception: where the machine grants AMX, products of
/// bf16 are summed in pairs.
struct GemmArgs {
  Element type = Element::f32;
  int64_t m = 0, n = 0, k = 0;
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  int64_t a_row = 0, a_col = 0;
  int64_t b_row = 0, b_col = 0;
  int64_t batch = 1;
  /// Batch i of A begins at a_offsets[i] when given, else at i * a_batch (elements); so for B.
  int64_t a_batch = 0, b_batch = 0;
  const int64_t* a_offsets = nullptr;
  const int64_t* b_offsets = nullptr;
  int64_t c_row = 0;               // from row to row of C; 0: n
  int64_t c_batch = 0;             // from batch to batch of C; 0: m rows
  const void* packed_b = nullptr;  // what pack_right made of B for this product; `b` is not read
  /// Where A and B are packed: GemmRoom bytes, aligned to 64. Null: allocated.
  void* left_room = nullptr;
  void* right_room = nullptr;
  int64_t right_bytes = 0;  // of right_room
  bool wide_c = false;      // f16 and bf16: C takes the f32 sums and nothing is rounded
  GemmEpilogue epilogue = {};
};

void gemm(const GemmArgs& args);

/// What a product packs its operands into. Depends on shapes, strides, whether B is packed ahead,
/// and, as threads have panels of their own, their number; with fewer than at the run, some
/// allocate.
struct GemmRoom {
  int64_t left = 0, right = 0;  // in bytes
};
GemmRoom room_of(const GemmArgs& args);

/// The size of B in the order of the kernels of cpu_level(), for a B that serves many products; 0
/// where that would not be faster. Depends on shapes and strides only.
int64_t packed_bytes(const GemmArgs& args);

/// Writes `packed_bytes(args)` bytes, aligned to 64. The bits of the product stay the same. The
/// machine must support `level`.
void pack_right(const GemmArgs& args, void* out, CpuLevel level = cpu_level());

/// The inverse, for f32 and f64 that any machine packed with the kernels of `level`: writes B, by
/// its strides. False when `packed` is too short; a null `b` only asks.
bool unpack_right(CpuLevel level, const GemmArgs& args, std::span<const std::byte> packed, void* b);

/// The same with the kernels of one level, which the machine must support, and without AMX.
void gemm_at(CpuLevel level, const GemmArgs& args);

}  // namespace tn
