// Products of matrices for GPUs, in the CPU's order: each element is a chain of fused
// multiply-adds with ascending k, restarted at K blocks (loop/reduction_tree.h), so the bits are
// the CPU's. The build compiles this to PTX (cmake/prebuilt.cmake).
using int64 = long long;
using uint16 = unsigned short;

#define SHARED __attribute__((address_space(3)))

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

struct F32 {
  using Memory = float;
  using Sum = float;
  static Sum load(Memory x) { return x; }
  static Memory store(Sum x) { return x; }
  static Sum fma(Sum a, Sum b, Sum c) { return __builtin_fmaf(a, b, c); }
  static Sum add(Sum a, Sum b) { return a + b; }
};
struct F64 {
  using Memory = double;
  using Sum = double;
  static Sum load(Memory x) { return x; }
  static Memory store(Sum x) { return x; }
  static Sum fma(Sum a, Sum b, Sum c) { return __builtin_fma(a, b, c); }
  static Sum add(Sum a, Sum b) { return a + b; }
};
struct F16 : F32 {
  using Memory = _Float16;
  static Sum load(Memory x) { return x; }
  static Memory store(Sum x) { return static_cast<_Float16>(x); }
};
struct BF16 : F32 {
  using Memory = uint16;
  static Sum load(Memory x) { return __builtin_bit_cast(float, static_cast<unsigned>(x) << 16); }
  static Memory store(Sum x) {
    unsigned bits = __builtin_bit_cast(unsigned, x);
    if (x != x) return static_cast<uint16>(bits >> 16 | 0x40);
    return static_cast<uint16>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
};
template <class T>
struct Whole {
  using Memory = T;
  using Sum = T;
  static Sum load(Memory x) { return x; }
  static Memory store(Sum x) { return x; }
  static Sum fma(Sum a, Sum b, Sum c) { return static_cast<T>(c + 1u * a * b); }
  static Sum add(Sum a, Sum b) { return static_cast<T>(a + b); }
};
/// One block computes Tile × Tile elements, a thread Each × Each of them.
template <class T, int Tile, int Each, int Depth, class Shared>
__attribute__((always_inline)) inline void multiply(const Product& p, Shared& room) {
  using Sum = typename T::Sum;
  using Memory = typename T::Memory;
  constexpr int kSide = Tile / Each, kThreads = kSide * kSide;
  int thread = static_cast<int>(__nvvm_read_ptx_sreg_tid_x());
  int64 tiles_n = (p.n + Tile - 1) / Tile, tiles_m = (p.m + Tile - 1) / Tile;
  int64 block = __nvvm_read_ptx_sreg_ctaid_x();
  int64 batch = block / (tiles_n * tiles_m);
  int64 tile = block - batch * tiles_n * tiles_m;
  int64 row0 = tile / tiles_n * Tile, column0 = tile % tiles_n * Tile;
  auto* left = static_cast<const Memory*>(p.left) + at(p.batch.extent, p.batch.a, batch);
  auto* right = static_cast<const Memory*>(p.right) + at(p.batch.extent, p.batch.b, batch);
  if (thread < Tile) {
    int64 row = row0 + thread < p.m ? row0 + thread : p.m - 1;
    int64 column = column0 + thread < p.n ? column0 + thread : p.n - 1;
    room.row[thread] = at(p.rows.extent, p.rows.a, row);
    room.column[thread] = at(p.columns.extent, p.columns.b, column);
  }
  int ti = thread / kSide, tj = thread % kSide;
  Sum total[Each][Each], sum[Each][Each];
#pragma unroll
  for (int i = 0; i < Each; ++i)
#pragma unroll
    for (int j = 0; j < Each; ++j) total[i][j] = sum[i][j] = Sum(0);
  int64 end_of_block = p.block;
  bool is_first = true;
  auto close = [&] {
#pragma unroll
    for (int i = 0; i < Each; ++i)
#pragma unroll
      for (int j = 0; j < Each; ++j) {
        total[i][j] = is_first ? sum[i][j] : T::add(total[i][j], sum[i][j]);
        sum[i][j] = Sum(0);
      }
    is_first = false;
  };
  for (int64 k0 = 0; k0 < p.k; k0 += Depth) {  // K blocks are multiples of Depth
    __syncthreads();
    if (k0 == end_of_block) close(), end_of_block += p.block;
    if (thread < Depth) {
      int64 k = k0 + thread < p.k ? k0 + thread : p.k - 1;
      room.left_k[thread] = at(p.inner.extent, p.inner.a, k);
      room.right_k[thread] = at(p.inner.extent, p.inner.b, k);
    }
    __syncthreads();
#pragma unroll 2
    for (int l = thread; l < Tile * Depth; l += kThreads) {
      int k = p.left_k_first ? l % Depth : l / Tile, r = p.left_k_first ? l / Depth : l % Tile;
      room.left[k][r] = T::load(left[room.row[r] + room.left_k[k]]);
    }
#pragma unroll 2
    for (int l = thread; l < Tile * Depth; l += kThreads) {
      int k = p.right_k_first ? l % Depth : l / Tile, c = p.right_k_first ? l / Depth : l % Tile;
      room.right[k][c] = T::load(right[room.column[c] + room.right_k[k]]);
    }
    __syncthreads();
    int depth = p.k - k0 < Depth ? static_cast<int>(p.k - k0) : Depth;
    auto step = [&](int k) {
      Sum x[Each], y[Each];
#pragma unroll
      for (int i = 0; i < Each; ++i) x[i] = room.left[k][ti * Each + i];
#pragma unroll
      for (int j = 0; j < Each; ++j) y[j] = room.right[k][tj + j * kSide];
#pragma unroll
      for (int i = 0; i < Each; ++i)
#pragma unroll
        for (int j = 0; j < Each; ++j) sum[i][j] = T::fma(x[i], y[j], sum[i][j]);
    };
    if (depth == Depth) {
#pragma unroll 4
      for (int k = 0; k < Depth; ++k) step(k);
    } else {
#pragma unroll 1
      for (int k = 0; k < depth; ++k) step(k);
    }
  }
  close();
  auto* out = static_cast<Memory*>(p.out) + batch * p.m * p.n;
#pragma unroll
  for (int i = 0; i < Each; ++i)
#pragma unroll
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

extern SHARED char shared_memory[];  // sizeof(Room) bytes; cuda_products.cpp knows how many

#define KERNEL(name, T, Tile, Each, Depth)                                    \
  extern "C" __attribute__((nvptx_kernel)) void product_##name(Product p) {   \
    using Own = Room<T::Sum, Tile, Depth>;                                    \
    multiply<T, Tile, Each, Depth>(p, *(Own*)(char*)shared_memory);           \
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
