// Convolutions and the cotangents of their weights for GPUs, as products of matrices whose left one
// is made of windows of x while it is read. Each element is a chain of fused multiply-adds in the
// CPU's order, restarted at blocks: the bits are the CPU's. The build compiles this to PTX
// (cmake/prebuilt.cmake).
#include "backend/cuda/prebuilt/product_tiles.cuh"

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
  int left_way, right_way;  // TileWay
};

struct Found {
  int64 x, other;
  int place[kAxes], pad;
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

template <class T>
struct ConvTiles {
  using Number = T;
  using Memory = typename T::Memory;
  static constexpr bool kHasEdges = true, kHasSteps = false, kHasTail = false;
  using Row = Found;
  using Inner = Found;
  struct Column {
    int64 at;
  };

  const Conv& p;

  void start(int64 group, TileBase<Memory>& base) const {
    base.left = static_cast<const Memory*>(p.x) + group * p.x_group;
    base.right = static_cast<const Memory*>(p.right) + group * p.right_group;
    base.out = static_cast<Memory*>(p.out) + group * p.out_group;
  }
  Row row(int64 i) const {
    Found found = find(p.rows, i);
    TN_UNROLL
    for (int q = 0; q < kAxes; ++q) found.place[q] += static_cast<int>(p.first[q]);
    return found;
  }
  Column column(int64 i) const { return {i * p.right_column}; }
  Inner inner(int64 k) const { return find(p.inner, k); }
  const Memory* left(const Memory* first, const Row& row, const Inner& k) const {
    bool is_inside = true;
    TN_UNROLL
    for (int q = 0; q < kAxes; ++q) {
      int place = row.place[q] + k.place[q];
      is_inside = is_inside && place >= 0 && place < p.extent[q];
    }
    return is_inside ? first + (row.x + k.x) : nullptr;
  }
  const Memory* right(const Memory* first, const Column& column, const Inner& k) const {
    return first + (column.at + k.other);
  }
  Memory* out(Memory* first, const Row& row, int64, int64 column) const {
    return first + row.other + column * p.out_column;
  }
};

// By number of kTileForms.
#define KERNEL(name, T, Form) TN_TILE_KERNEL(conv_##name, Conv, ConvTiles<T>, Form)
#define KERNELS(name, T)    \
  KERNEL(name##_16, T, 0) \
  KERNEL(name##_64, T, 2)

KERNELS(f32, F32)
KERNEL(f32_32, F32, 1)
KERNEL(f32_128x64, F32, 3)
KERNELS(f64, F64)
KERNELS(f16, F16)
KERNELS(bf16, BF16)
