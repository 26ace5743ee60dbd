#pragma once
// The instruction tables of the block interpreter: one function per operation and element type.
#include "loop/op.h"
#include "loop/reduction_tree.h"
#include "tenon/dtype.h"

namespace tn::loop {

/// dst[i] = op(a[i], b[i], c[i]) for i < n. `dst` may be one of the operands.
using BlockFn = void (*)(void* dst, const void* a, const void* b, const void* c, int64_t n);

/// Elements of a register. A multiple of the lanes that divides the chunk.
inline constexpr int64_t kBlock = 1024;
static_assert(kBlock % kLanes == 0 && kChunk % kBlock == 0);

/// A monoid over one element type, along contiguous runs.
struct RunFns {
  /// One result per row of `extent` <= kChunk elements: lanes, then halving.
  void (*rows)(void* dst, const void* src, int64_t rows, int64_t extent) = nullptr;
  /// acc[i % kLanes] = op(acc[i % kLanes], src[i]).
  void (*lanes)(void* acc, const void* src, int64_t n) = nullptr;
  /// dst = the partial results of src in order, carried in and out through `carry`.
  void (*scan)(void* dst, const void* src, void* carry, int64_t n) = nullptr;
  void (*scan_reverse)(void* dst, const void* src, void* carry, int64_t n) = nullptr;
  /// dst[i] = op(dst[i], src[i]) at base[offset[i]], in order, where `mask` (or everywhere).
  void (*scatter)(void* base, const int64_t* offset, const void* src, const uint8_t* mask,
                  int64_t n) = nullptr;
};

/// argmax and argmin keep the best value and its index; index < 0 says that there is none yet.
struct ArgFns {
  /// A run of `n` elements whose first has the index `first`.
  void (*run)(void* best, int64_t* index, const void* src, int64_t n, int64_t first) = nullptr;
  /// `rows` rows of `n` independent columns; the first row has the index `first`.
  void (*columns)(void* best, int64_t* index, const void* src, int64_t rows, int64_t n,
                  int64_t first) = nullptr;
  /// Takes the other's best where it is better; its indices are larger.
  void (*merge)(void* best, int64_t* index, const void* other, const int64_t* other_index,
                int64_t n) = nullptr;
};

/// Runs of elements of one size between memory and a register.
struct MoveFns {
  void (*repeat)(void* dst, const void* src, int64_t n) = nullptr;  // one element, n times
  void (*take)(void* dst, const void* src, int64_t n, int64_t stride) = nullptr;
  void (*put)(void* dst, const void* src, int64_t n, int64_t stride) = nullptr;
};

struct BlockOps {
  BlockFn op[kOps][kDTypes] = {};       // by key_of the value
  BlockFn cast[kDTypes][kDTypes] = {};  // [from][to]
  RunFns run[6][kDTypes] = {};          // by Monoid, up to or_
  ArgFns arg[2][kDTypes] = {};          // argmax, argmin
  MoveFns move[4] = {};                 // by the logarithm of the size in bytes
};

/// The table that every machine can use.
const BlockOps& baseline_block_ops();
/// The table of programs that are not told another: the baseline, until the code generator of the
/// CPU takes a wider one into use (backend/cpu/block_op_levels.h).
extern const BlockOps& (*block_ops)();

}  // namespace tn::loop

namespace tn {
namespace v2 {
void fill_arithmetic(loop::BlockOps& ops);
void fill_casts(loop::BlockOps& ops);
void fill_math(loop::BlockOps& ops);
void fill_runs(loop::BlockOps& ops);
void fill_moves(loop::BlockOps& ops);
}  // namespace v2
namespace v3 {
void fill_arithmetic(loop::BlockOps& ops);
void fill_casts(loop::BlockOps& ops);
void fill_math(loop::BlockOps& ops);
void fill_runs(loop::BlockOps& ops);
void fill_moves(loop::BlockOps& ops);
}  // namespace v3
namespace v4 {
void fill_arithmetic(loop::BlockOps& ops);
void fill_casts(loop::BlockOps& ops);
void fill_math(loop::BlockOps& ops);
void fill_runs(loop::BlockOps& ops);
void fill_moves(loop::BlockOps& ops);
}  // namespace v4
}  // namespace tn
