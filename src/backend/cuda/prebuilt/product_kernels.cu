// Products of matrices for GPUs, in the CPU's order: each element is a chain of fused
// multiply-adds with ascending k, restarted at K blocks (loop/reduction_tree.h), so the bits are
// the CPU's. The build compiles this to PTX (cmake/prebuilt.cmake).
#include "backend/cuda/prebuilt/product_tiles.cuh"
#include "backend/cuda/prebuilt/whole_products.cuh"

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
  int left_way, right_way;  // TileWay
  TailProgram tail;         // of f32
};

/// Where element `i` of axes lies. A function of its own: divisions are long.
static __attribute__((noinline)) int64 walk(int64 i, int64 e0, int64 e1, int64 e2, int64 e3,
                                            int64 s0, int64 s1, int64 s2, int64 s3) {
  int64 r3 = i / e3, r2 = r3 / e2, r1 = r2 / e1;
  return (i - r3 * e3) * s3 + (r3 - r2 * e2) * s2 + (r2 - r1 * e1) * s1 + r1 * s0;
}
__attribute__((always_inline)) inline bool is_one(const Axes& a) {
  return a.extent[0] == 1 && a.extent[1] == 1 && a.extent[2] == 1;
}
__attribute__((always_inline)) inline int64 at(const int64* e, const int64* s, int64 i) {
  if (e[0] == 1 && e[1] == 1 && e[2] == 1) return i * s[3];
  return walk(i, e[0], e[1], e[2], e[3], s[0], s[1], s[2], s[3]);
}

template <class T>
struct ProductTiles {
  using Number = T;
  using Memory = typename T::Memory;
  static constexpr bool kHasEdges = false, kHasSteps = true, kHasTail = kIsSame<T, F32>;
  struct Row {
    int64 at;
  };
  using Column = Row;
  struct Inner {
    int64 left, right;
  };

  const Product& p;

  void start(int64 batch, TileBase<Memory>& base) const {
    base.left = static_cast<const Memory*>(p.left) + at(p.batch.extent, p.batch.a, batch);
    base.right = static_cast<const Memory*>(p.right) + at(p.batch.extent, p.batch.b, batch);
    base.out = static_cast<Memory*>(p.out) + batch * p.m * p.n;
  }
  Row row(int64 i) const { return {at(p.rows.extent, p.rows.a, i)}; }
  Column column(int64 i) const { return {at(p.columns.extent, p.columns.b, i)}; }
  Inner inner(int64 k) const {
    return {at(p.inner.extent, p.inner.a, k), at(p.inner.extent, p.inner.b, k)};
  }
  const Memory* left(const Memory* first, const Row& row, const Inner& k) const {
    return first + (row.at + k.left);
  }
  const Memory* right(const Memory* first, const Column& column, const Inner& k) const {
    return first + (column.at + k.right);
  }
  Memory* out(Memory* first, const Row&, int64 row, int64 column) const {
    return first + row * p.n + column;
  }

  bool is_even() const { return is_one(p.rows) && is_one(p.columns) && is_one(p.inner); }
  Strides left_strides() const { return {p.rows.a[kDims - 1], p.inner.a[kDims - 1]}; }
  Strides right_strides() const { return {p.columns.b[kDims - 1], p.inner.b[kDims - 1]}; }
};

// By number of kTileForms. For pieces of the operands that lie by rows (r) or along k (k).
#define KERNEL(name, T, ...) TN_TILE_KERNEL(product_##name, Product, ProductTiles<T>, __VA_ARGS__)
#define ALL_KERNELS(name, T, Form)        \
  KERNEL(name##_rr, T, Form, true, true)  \
  KERNEL(name##_rk, T, Form, true, false) \
  KERNEL(name##_kr, T, Form, false, true) \
  KERNEL(name##_kk, T, Form, false, false)
#define WHOLE_KERNELS(name, Form)                             \
  TN_WHOLE_KERNEL(product_f32_##name##_rr, Form, true, true)  \
  TN_WHOLE_KERNEL(product_f32_##name##_rk, Form, true, false) \
  TN_WHOLE_KERNEL(product_f32_##name##_kr, Form, false, true) \
  TN_WHOLE_KERNEL(product_f32_##name##_kk, Form, false, false)
#define KERNELS(name, T)  \
  KERNEL(name##_16, T, 0) \
  KERNEL(name##_64, T, 2)

ALL_KERNELS(f32_16, F32, 0)
ALL_KERNELS(f32_16deep, F32, 6)
ALL_KERNELS(f32_32, F32, 1)
ALL_KERNELS(f32_64, F32, 2)
ALL_KERNELS(f32_128x64, F32, 3)
ALL_KERNELS(f32_128, F32, 4)
ALL_KERNELS(f32_128x256, F32, 5)
WHOLE_KERNELS(16whole, 7)
WHOLE_KERNELS(32whole, 8)
KERNELS(f64, F64)
KERNELS(f16, F16)
KERNELS(bf16, BF16)
KERNELS(b32, Whole<unsigned>)
KERNELS(b64, Whole<unsigned long long>)
