// Convolutions and the cotangents of their weights for GPUs, as products of matrices whose left one
// is made of windows of x while it is read. Each element is a chain of fused multiply-adds in the
// CPU's order, restarted at blocks: the bits are the CPU's. The build compiles this to PTX
// (cmake/prebuilt.cmake).
#include "backend/cuda/prebuilt/gpu_numbers.h"

constexpr int kDims = 4, kAxes = 3;

/// Rows, or what is summed over: four numbers, the last one fastest. Three of them, from `spatial`
/// on, are a place of each spatial axis.
struct Walk {
  int64 extent[kDims], x[kDims], other[kDims];  // strides in x, and in out or in the right matrix
  int64 step[kAxes];                            // along the spatial axes of x
  int spatial, pad;
};

/// As in cuda_convolutions.cpp. An element of x at a place outside is 0.
struct Conv {
  const void* x;
  const void* right;
  void* out;
  int64 m, n, k, block;  // block: the length of a chain
  Walk rows, inner;
  int64 first[kAxes], extent[kAxes];  // place of the first row and k; places of x
  int64 right_column, out_column;
  int64 x_group, right_group, out_group;
  int left_k_first, right_k_first;  // neighbours along k lie side by side
};

struct Found {
  int64 x, other;
  int place[kAxes];
};

/// Divisions of 64 bits are long.
inline int64 quotient(int64 a, int64 b) {
  if (a < (1ll << 32))
    return b < (1ll << 32) ? static_cast<uint32>(a) / static_cast<uint32>(b) : 0;
  return a / b;
}

inline Found find(const Walk& w, int64 i) {
  int64 r3 = quotient(i, w.extent[3]), r2 = quotient(r3, w.extent[2]);
  int64 r1 = quotient(r2, w.extent[1]);
  int64 a0 = r1, a1 = r2 - r1 * w.extent[1], a2 = r3 - r2 * w.extent[2], a3 = i - r3 * w.extent[3];
  Found found;
  found.x = a0 * w.x[0] + a1 * w.x[1] + a2 * w.x[2] + a3 * w.x[3];
  found.other = a0 * w.other[0] + a1 * w.other[1] + a2 * w.other[2] + a3 * w.other[3];
  found.place[0] = static_cast<int>((w.spatial ? a1 : a0) * w.step[0]);
  found.place[1] = static_cast<int>((w.spatial ? a2 : a1) * w.step[1]);
  found.place[2] = static_cast<int>((w.spatial ? a3 : a2) * w.step[2]);
  return found;
}

template <class Sum, int Tile, int Depth>
struct Room {
  int64 row[Tile], out[Tile], left_k[Depth], right_k[Depth];
  int row_place[kAxes][Tile], k_place[kAxes][Depth];
  Sum left[Depth][Tile + 1], right[Depth][Tile + 1];
};

/// One block computes Tile × Tile elements, a thread Each × Each of them.
template <class T, int Tile, int Each, int Depth>
__attribute__((always_inline)) inline void convolve(const Conv& p,
                                                    Room<typename T::Sum, Tile, Depth>& room) {
  using Sum = typename T::Sum;
  using Memory = typename T::Memory;
  constexpr int kSide = Tile / Each, kThreads = kSide * kSide;
  int self = thread();
  int64 tiles_n = (p.n + Tile - 1) / Tile, tiles_m = (p.m + Tile - 1) / Tile;
  int64 group = block() / (tiles_n * tiles_m), tile = block() - group * tiles_n * tiles_m;
  int64 row0 = tile / tiles_n * Tile, column0 = tile % tiles_n * Tile;
  auto* x = static_cast<const Memory*>(p.x) + group * p.x_group;
  auto* right = static_cast<const Memory*>(p.right) + group * p.right_group;
  if (self < Tile) {
    Found found = find(p.rows, row0 + self < p.m ? row0 + self : p.m - 1);
    room.row[self] = found.x, room.out[self] = found.other;
    TN_UNROLL
    for (int q = 0; q < kAxes; ++q)
      room.row_place[q][self] = found.place[q] + static_cast<int>(p.first[q]);
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
  for (int64 k0 = 0; k0 < p.k; k0 += Depth) {  // blocks are multiples of Depth
    meet();
    if (k0 == end_of_block) close(), end_of_block += p.block;
    if (self < Depth) {
      Found found = find(p.inner, k0 + self < p.k ? k0 + self : p.k - 1);
      room.left_k[self] = found.x, room.right_k[self] = found.other;
      TN_UNROLL
      for (int q = 0; q < kAxes; ++q) room.k_place[q][self] = found.place[q];
    }
    meet();
    TN_UNROLL_BY(2)
    for (int l = self; l < Tile * Depth; l += kThreads) {
      int k = p.left_k_first ? l % Depth : l / Tile, r = p.left_k_first ? l / Depth : l % Tile;
      bool is_inside = true;
      TN_UNROLL
      for (int q = 0; q < kAxes; ++q) {
        int place = room.row_place[q][r] + room.k_place[q][k];
        is_inside = is_inside && place >= 0 && place < p.extent[q];
      }
      room.left[k][r] = is_inside ? T::load(x[room.row[r] + room.left_k[k]]) : Sum(0);
    }
    TN_UNROLL_BY(2)
    for (int l = self; l < Tile * Depth; l += kThreads) {
      int k = p.right_k_first ? l % Depth : l / Tile, c = p.right_k_first ? l / Depth : l % Tile;
      int64 column = column0 + c < p.n ? column0 + c : p.n - 1;
      room.right[k][c] = T::load(right[column * p.right_column + room.right_k[k]]);
    }
    meet();
    int depth = p.k - k0 < Depth ? static_cast<int>(p.k - k0) : Depth;
    auto step = [&](int k) {
      Sum a[Each], b[Each];
      TN_UNROLL
      for (int i = 0; i < Each; ++i) a[i] = room.left[k][ti * Each + i];
      TN_UNROLL
      for (int j = 0; j < Each; ++j) b[j] = room.right[k][tj + j * kSide];
      TN_UNROLL
      for (int i = 0; i < Each; ++i)
        TN_UNROLL
        for (int j = 0; j < Each; ++j) sum[i][j] = T::fma(a[i], b[j], sum[i][j]);
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
  meet();  // where k is 0, what was found of the rows
  auto* out = static_cast<Memory*>(p.out) + group * p.out_group;
  TN_UNROLL
  for (int i = 0; i < Each; ++i)
    TN_UNROLL
    for (int j = 0; j < Each; ++j) {
      int row = ti * Each + i;
      int64 column = column0 + tj + j * kSide;
      if (row0 + row < p.m && column < p.n)
        out[room.out[row] + column * p.out_column] = T::store(total[i][j]);
    }
}

#define KERNEL(name, T, Tile, Each, Depth)                                                     \
  TN_KERNEL(conv_##name, Conv) {                                                               \
    convolve<T, Tile, Each, Depth>(p, shared<Room<T::Sum, Tile, Depth>>());                    \
  }
#define KERNELS(name, T)             \
  KERNEL(name##_large, T, 64, 4, 16) \
  KERNEL(name##_small, T, 16, 1, 32)

KERNELS(f32, F32)
KERNELS(f64, F64)
KERNELS(f16, F16)
KERNELS(bf16, BF16)
