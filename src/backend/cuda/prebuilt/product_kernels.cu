// Products of matrices for GPUs, in the CPU's order: each element is a chain of fused
// multiply-adds with ascending k, restarted at K blocks (loop/reduction_tree.h), so the bits are
// the CPU's. The build compiles this to PTX (cmake/prebuilt.cmake).
#include "backend/cuda/prebuilt/gpu_numbers.h"

constexpr int kDims = 4;

/// Several axes walked as one, the last one fastest.
struct Axes {
  int64 extent[kDims], a[kDims], b[kDims];
};

struct Product {
  const void* left;
  const void* right;
  void* out;
  int64 m, n, k, block;  // block: the length of a K block
  Axes rows, columns, inner, batch;
  int left_k_first, right_k_first;  // neighbours along k lie side by side
};

/// Where element `i` of axes lies. A function of its own: divisions are long.
__attribute__((noinline)) int64 walk(int64 i, int64 e0, int64 e1, int64 e2, int64 e3, int64 s0,
                                     int64 s1, int64 s2, int64 s3) {
  int64 r3 = i / e3, r2 = r3 / e2, r1 = r2 / e1;
  return (i - r3 * e3) * s3 + (r3 - r2 * e2) * s2 + (r2 - r1 * e1) * s1 + r1 * s0;
}
__attribute__((always_inline)) inline int64 at(const int64* e, const int64* s, int64 i) {
  if (e[0] == 1 && e[1] == 1 && e[2] == 1) return i * s[3];
  return walk(i, e[0], e[1], e[2], e[3], s[0], s[1], s[2], s[3]);
}

/// One block computes Tile × Tile elements, a thread Each × Each of them.
template <class T, int Tile, int Each, int Depth, class Shared>
__attribute__((always_inline)) inline void multiply_tile(const Product& p, Shared& room) {
  using Sum = typename T::Sum;
  using Memory = typename T::Memory;
  constexpr int kSide = Tile / Each, kThreads = kSide * kSide;
  int self = thread();
  int64 tiles_n = (p.n + Tile - 1) / Tile, tiles_m = (p.m + Tile - 1) / Tile;
  int64 batch = block() / (tiles_n * tiles_m);
  int64 tile = block() - batch * tiles_n * tiles_m;
  int64 row0 = tile / tiles_n * Tile, column0 = tile % tiles_n * Tile;
  auto* left = static_cast<const Memory*>(p.left) + at(p.batch.extent, p.batch.a, batch);
  auto* right = static_cast<const Memory*>(p.right) + at(p.batch.extent, p.batch.b, batch);
  if (self < Tile) {
    int64 row = row0 + self < p.m ? row0 + self : p.m - 1;
    int64 column = column0 + self < p.n ? column0 + self : p.n - 1;
    room.row[self] = at(p.rows.extent, p.rows.a, row);
    room.column[self] = at(p.columns.extent, p.columns.b, column);
  }
  int ti = self / kSide, tj = self % kSide;
  Sum total[Each][Each], sum[Each][Each];
  TN_UNROLL
  for (int i = 0; i < Each; ++i)
    TN_UNROLL
    for (int j = 0; j < Each; ++j) total[i][j] = sum[i][j] = Sum(0);
  int64 end_of_block = p.block;
  bool is_first = true;
  auto close = [&] {
    TN_UNROLL
    for (int i = 0; i < Each; ++i)
      TN_UNROLL
      for (int j = 0; j < Each; ++j) {
        total[i][j] = is_first ? sum[i][j] : T::add(total[i][j], sum[i][j]);
        sum[i][j] = Sum(0);
      }
    is_first = false;
  };
  for (int64 k0 = 0; k0 < p.k; k0 += Depth) {  // K blocks are multiples of Depth
    meet();
    if (k0 == end_of_block) close(), end_of_block += p.block;
    if (self < Depth) {
      int64 k = k0 + self < p.k ? k0 + self : p.k - 1;
      room.left_k[self] = at(p.inner.extent, p.inner.a, k);
      room.right_k[self] = at(p.inner.extent, p.inner.b, k);
    }
    meet();
    TN_UNROLL_BY(2)
    for (int l = self; l < Tile * Depth; l += kThreads) {
      int k = p.left_k_first ? l % Depth : l / Tile, r = p.left_k_first ? l / Depth : l % Tile;
      room.left[k][r] = T::load(left[room.row[r] + room.left_k[k]]);
    }
    TN_UNROLL_BY(2)
    for (int l = self; l < Tile * Depth; l += kThreads) {
      int k = p.right_k_first ? l % Depth : l / Tile, c = p.right_k_first ? l / Depth : l % Tile;
      room.right[k][c] = T::load(right[room.column[c] + room.right_k[k]]);
    }
    meet();
    int depth = p.k - k0 < Depth ? static_cast<int>(p.k - k0) : Depth;
    auto step = [&](int k) {
      Sum x[Each], y[Each];
      TN_UNROLL
      for (int i = 0; i < Each; ++i) x[i] = room.left[k][ti * Each + i];
      TN_UNROLL
      for (int j = 0; j < Each; ++j) y[j] = room.right[k][tj + j * kSide];
      TN_UNROLL
      for (int i = 0; i < Each; ++i)
        TN_UNROLL
        for (int j = 0; j < Each; ++j) sum[i][j] = T::fma(x[i], y[j], sum[i][j]);
    };
    if (depth == Depth) {
      TN_UNROLL_BY(4)
      for (int k = 0; k < Depth; ++k) step(k);
    } else {
      TN_UNROLL_BY(1)
      for (int k = 0; k < depth; ++k) step(k);
    }
  }
  close();
  auto* out = static_cast<Memory*>(p.out) + batch * p.m * p.n;
  TN_UNROLL
  for (int i = 0; i < Each; ++i)
    TN_UNROLL
    for (int j = 0; j < Each; ++j) {
      int64 row = row0 + ti * Each + i, column = column0 + tj + j * kSide;
      if (row < p.m && column < p.n) out[row * p.n + column] = T::store(total[i][j]);
    }
}

template <class Sum, int Tile, int Depth>
struct Room {
  int64 row[Tile], column[Tile], left_k[Depth], right_k[Depth];
  Sum left[Depth][Tile + 1], right[Depth][Tile + 1];
};

#define KERNEL(name, T, Tile, Each, Depth)                                   \
  TN_KERNEL(product_##name, Product) {                                       \
    multiply_tile<T, Tile, Each, Depth>(p, shared<Room<T::Sum, Tile, Depth>>()); \
  }
#define KERNELS(name, T)           \
  KERNEL(name##_large, T, 64, 4, 16) \
  KERNEL(name##_small, T, 16, 1, 32)

KERNELS(f32, F32)
KERNELS(f64, F64)
KERNELS(f16, F16)
KERNELS(bf16, BF16)
KERNELS(b32, Whole<unsigned>)
KERNELS(b64, Whole<unsigned long long>)

#define TN_INLINE __attribute__((always_inline))

// Large products of f32 whose axes are one each: what a thread computes is in registers, tiles are
// loaded 16 bytes at a time while the last ones are multiplied, and sums of finished K blocks wait
// in the result.
constexpr int kHuge = 128, kHugeDepth = 16, kHugePieces = kHuge * kHugeDepth / 4 / 256;
using Vector = float __attribute__((vector_size(16)));

struct HugeRoom {
  float left[2][kHugeDepth][kHuge + 4], right[2][kHugeDepth][kHuge + 4];
};

/// 16 bytes of shared memory. LLVM would load them one by one.
inline Vector load_shared(const float* from) {
#if defined(__NVPTX__)
  auto at = reinterpret_cast<uint64>((__attribute__((address_space(3))) const float*)from);
  float a, b, c, d;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(a), "=f"(b), "=f"(c), "=f"(d)
               : "r"(static_cast<uint32>(at))
               : "memory");
  return {a, b, c, d};
#else
  return *reinterpret_cast<const Vector*>(from);
#endif
}

/// One operand: `count` rows (columns of the right one) of `k` elements.
struct Side {
  const float* at;
  int64 count, k, stride, k_stride;
  bool rows_first;  // neighbours along the rows lie side by side
  bool vectors;     // at places that are multiples of 4
};
inline Side side_of(const void* at, int64 batch, int64 count, int64 k, int64 stride,
                    int64 k_stride) {
  bool rows_first = stride == 1 && k_stride != 1;
  int64 far = rows_first ? k_stride : stride;
  bool is_near = rows_first || k_stride == 1;
  auto* first = static_cast<const float*>(at) + batch;
  bool vectors = is_near && far % 4 == 0 && reinterpret_cast<uint64>(first) % 16 == 0;
  return {first, count, k, stride, k_stride, rows_first, vectors};
}

/// Where piece `i` of a tile, 4 elements, lies in it.
struct Piece {
  int row, k;
};
inline Piece piece_of(const Side& s, int self, int i) {
  if (s.rows_first) return {self % 32 * 4, self / 32 + 8 * i};
  return {self / 4 + 64 * i, self % 4 * 4};
}

/// 0 where the operand ends: such rows are not stored, and such k not added.
inline Vector load_piece(const Side& s, Piece p, int64 row0, int64 k0) {
  int64 row = row0 + p.row, k = k0 + p.k;
  const float* from = s.at + row * s.stride + k * s.k_stride;
  bool is_whole = s.rows_first ? row + 4 <= s.count && k < s.k : row < s.count && k + 4 <= s.k;
  if (is_whole && s.vectors) return *reinterpret_cast<const Vector*>(from);
  Vector made = {0, 0, 0, 0};
  int64 step = s.rows_first ? s.stride : s.k_stride;
  TN_UNROLL
  for (int l = 0; l < 4; ++l) {
    bool is_inside = s.rows_first ? row + l < s.count && k < s.k : row < s.count && k + l < s.k;
    if (is_inside) made[l] = from[l * step];
  }
  return made;
}

inline void store_piece(const Side& s, Piece p, Vector value, float (*tile)[kHuge + 4]) {
  if (s.rows_first) {
    *reinterpret_cast<Vector*>(&tile[p.k][p.row]) = value;
    return;
  }
  TN_UNROLL
  for (int l = 0; l < 4; ++l) tile[p.k + l][p.row] = value[l];
}

TN_KERNEL(product_f32_huge, Product) {
  auto& room = shared<HugeRoom>();
  int self = thread(), ti = self / 16, tj = self % 16;
  int64 tiles_n = (p.n + kHuge - 1) / kHuge, tiles = (p.m + kHuge - 1) / kHuge * tiles_n;
  int64 batch = block() / tiles, tile = block() - batch * tiles;
  int64 row0 = tile / tiles_n * kHuge, column0 = tile % tiles_n * kHuge;
  Side left = side_of(p.left, batch * p.batch.a[3], p.m, p.k, p.rows.a[3], p.inner.a[3]);
  Side right = side_of(p.right, batch * p.batch.b[3], p.n, p.k, p.columns.b[3], p.inner.b[3]);
  auto* out = static_cast<float*>(p.out) + batch * p.m * p.n;
  float sum[8][8];
  TN_UNROLL
  for (int i = 0; i < 8; ++i)
    TN_UNROLL
    for (int j = 0; j < 8; ++j) sum[i][j] = 0;
  auto close = [&](bool is_first) TN_INLINE {
    TN_UNROLL
    for (int i = 0; i < 8; ++i)
      TN_UNROLL
      for (int j = 0; j < 8; ++j) {
        int64 row = row0 + i / 4 * 64 + ti * 4 + i % 4;
        int64 column = column0 + j / 4 * 64 + tj * 4 + j % 4;
        if (row < p.m && column < p.n) {
          float* to = out + row * p.n + column;
          *to = is_first ? sum[i][j] : *to + sum[i][j];
        }
        sum[i][j] = 0;
      }
  };
  Vector next_left[kHugePieces], next_right[kHugePieces];
  auto load = [&](int64 k0) TN_INLINE {
    TN_UNROLL
    for (int i = 0; i < kHugePieces; ++i) {
      next_left[i] = load_piece(left, piece_of(left, self, i), row0, k0);
      next_right[i] = load_piece(right, piece_of(right, self, i), column0, k0);
    }
  };
  auto store = [&](int side) TN_INLINE {
    TN_UNROLL
    for (int i = 0; i < kHugePieces; ++i) {
      store_piece(left, piece_of(left, self, i), next_left[i], room.left[side]);
      store_piece(right, piece_of(right, self, i), next_right[i], room.right[side]);
    }
  };
  auto step = [&](int side, int k) TN_INLINE {
    Vector a[2], b[2];
    TN_UNROLL
    for (int h = 0; h < 2; ++h) {
      a[h] = load_shared(&room.left[side][k][h * 64 + ti * 4]);
      b[h] = load_shared(&room.right[side][k][h * 64 + tj * 4]);
    }
    TN_UNROLL
    for (int i = 0; i < 8; ++i)
      TN_UNROLL
      for (int j = 0; j < 8; ++j)
        sum[i][j] = __builtin_fmaf(a[i / 4][i % 4], b[j / 4][j % 4], sum[i][j]);
  };
  int64 end_of_block = p.block;
  if (p.k > 0) load(0), store(0);
  meet();
  int side = 0;
  for (int64 k0 = 0; k0 < p.k; k0 += kHugeDepth, side ^= 1) {  // K blocks are multiples of it
    if (k0 == end_of_block) close(end_of_block == p.block), end_of_block += p.block;
    bool goes_on = k0 + kHugeDepth < p.k;
    if (goes_on) load(k0 + kHugeDepth);
    if (p.k - k0 >= kHugeDepth) {
      TN_UNROLL_BY(8)
      for (int k = 0; k < kHugeDepth; ++k) step(side, k);
    } else {
      TN_UNROLL_BY(1)
      for (int k = 0; k < p.k - k0; ++k) step(side, k);
    }
    if (goes_on) store(side ^ 1);
    meet();
  }
  close(end_of_block == p.block);
}
