#pragma once
// Small products of two matrices of float32 whose sums are one K block: all their elements are on
// their way to shared memory at once, and so is what a program behind the product loads. So there
// is little between one wait for memory and the end. Each result is one chain of fused
// multiply-adds with ascending k, as on the CPU.
#include "backend/cuda/prebuilt/product_tiles.cuh"

/// As in cuda_products.cpp.
struct WholeProduct {
  const float *left, *right;
  float* out;
  int m, n, k;
  int left_vectors, right_vectors;                // 16 bytes are copied at once
  int64 left_row, left_k, right_column, right_k;  // strides
  TailProgram tail;
};

/// One of the operands; its columns are rows here too. It lies in shared memory as it does in
/// memory: by rows, or along k. A thread has `Each` rows.
template <int Each, bool ByRows>
struct WholeOperand {
  static constexpr int kThreads = 256, kVector = 4;
  static constexpr int kRows = kWholeSide * Each, kNear = ByRows ? Each : 1;

  const float* from;  // the first row of the tile
  int64 row_stride, k_stride;
  int rows;  // of the matrix, from there on
  bool has_vectors;
  float* to;
  int pitch;  // between rows, or between elements of the sums

  /// Of row i of a thread from its first.
  static constexpr int apart(int i) { return i % kNear + i / kNear * (kWholeSide * kNear); }
  TN_INLINE float* at(int row, int k) const {
    return to + (ByRows ? k * pitch + row : row * pitch + k);
  }

  /// Begins copies of the elements of the sums from k0 to k1. Rows beyond the matrix are others.
  TN_INLINE void bring(int k0, int k1) const {
    if (has_vectors)
      bring_by<kVector>(k0, k1);
    else
      bring_by<1>(k0, k1);
  }
  template <int Width>
  TN_INLINE void bring_by(int k0, int k1) const {
    constexpr int kWide = (ByRows ? kRows : kWholePiece) / Width;  // threads side by side
    constexpr int kFar = kThreads / kWide, kCount = kRows * kWholePiece / Width / kThreads;
    int near = thread() % kWide * Width, far = thread() / kWide;
    if constexpr (ByRows) {
      int read = near < rows ? near : (rows - 1) / Width * Width, k = k0 + far;
      const float* x = from + read * row_stride + k * k_stride;
      int64 step = kFar * k_stride;
      TN_UNROLL_BY(4)
      for (int i = 0; i < kCount; ++i, k += kFar, x += step)
        if (k < k1) begin_copy<Width * 4, false>(at(near, k), x);
    } else {
      if (k0 + near >= k1) return;
      const float *first = from + (k0 + near) * k_stride, *x = first + far * row_stride;
      int64 step = kFar * row_stride;
      TN_UNROLL_BY(4)
      for (int i = 0, row = far; i < kCount; ++i, row += kFar, x += step)
        begin_copy<Width * 4, false>(at(row, k0 + near), row < rows ? x : first);
    }
  }

  /// Where the rows of a thread lie, of which `row` of the tile is the first.
  struct Places {
    NearPlace row[ByRows ? 1 : Each];

    TN_INLINE void advance(int count) {
      TN_UNROLL
      for (NearPlace& at : row) at += count * kAlong * 4;
    }
  };
  static constexpr int kAlong = ByRows ? whole_pitch(kRows) : 1;  // between elements of the sums
  TN_INLINE Places places_of(int row, int k) const {
    Places made;
    TN_UNROLL
    for (int i = 0; i < (ByRows ? 1 : Each); ++i) made.row[i] = place_of(at(row + apart(i), k));
    return made;
  }

  /// The elements of a thread for `Count` elements of the sums, four at most.
  template <int Count>
  struct Elements {
    static constexpr int kWidth = ByRows ? kNear : Count;
    SumVector<float, kWidth> vector[ByRows ? Count : Each];

    /// From `k` on.
    TN_INLINE void load(const Places& places, int k) {
      TN_UNROLL
      for (int i = 0; i < (ByRows ? Count : Each); ++i) {
        NearPlace place =
            ByRows ? places.row[0] + (k + i) * kAlong * 4 : places.row[ByRows ? 0 : i] + k * 4;
        vector[i] = load_vector_at<kWidth, float>(place);
      }
    }
    TN_INLINE float at(int i, int k) const { return ByRows ? vector[k].at[i] : vector[i].at[k]; }
  };
};

/// A tile, by threads with Each × Each results.
template <int Each, bool LeftByRows, bool RightByRows>
struct WholeLoop {
  static constexpr int kTile = kWholeSide * Each, kResults = Each * Each, kVector = 4;
  using Left = WholeOperand<Each, LeftByRows>;
  using Right = WholeOperand<Each, RightByRows>;

  TN_INLINE WholeLoop(const WholeProduct& product, float* memory) : p(product) {
    auto tiles_n = static_cast<uint32>((p.n + kTile - 1) / kTile);
    auto tile = static_cast<uint32>(block());
    row0 = static_cast<int>(tile / tiles_n) * kTile;
    column0 = static_cast<int>(tile % tiles_n) * kTile;
    int along_k = whole_pitch(whole_depth(p.k)), by_rows = whole_pitch(kTile);
    left = {p.left + row0 * p.left_row,
            p.left_row,
            p.left_k,
            p.m - row0,
            p.left_vectors != 0,
            memory,
            LeftByRows ? by_rows : along_k};
    right = {p.right + column0 * p.right_column,
             p.right_column,
             p.right_k,
             p.n - column0,
             p.right_vectors != 0,
             memory + whole_room(kTile, p.k, LeftByRows),
             RightByRows ? by_rows : along_k};
    // A warp has 8 rows and 4 columns, 8 threads of it 4 and 2.
    int self = thread(), warp = self / 32;
    row = (self / 2 % 8 + warp / 4 * 8) * Left::kNear;
    column = (self % 2 + self / 16 % 2 * 2 + warp % 4 * 4) * Right::kNear;
  }

  TN_INLINE void run() {
    int pieces = (p.k + kWholePiece - 1) / kWholePiece;
    TN_UNROLL_BY(1)
    for (int i = 0; i < pieces; ++i) {
      left.bring(i * kWholePiece, end_of(i)), right.bring(i * kWholePiece, end_of(i));
      end_group();
    }
    float loaded[kTailLoads][kResults];
    load_for_tail(loaded);
    TN_UNROLL_BY(1)
    for (int i = 0; i < pieces; ++i) {
      wait_for_all_but(pieces - 1 - i);
      meet();
      add(i * kWholePiece, end_of(i));
    }
    store(loaded);
  }

 private:
  TN_INLINE int end_of(int piece) const {
    int end = (piece + 1) * kWholePiece;
    return end < p.k ? end : p.k;
  }
  TN_INLINE static void wait_for_all_but(int left) {
    static_assert(kWholeDepth / kWholePiece == 8);
    switch (left) {
      case 0:
        return wait_for_groups<0>();
      case 1:
        return wait_for_groups<1>();
      case 2:
        return wait_for_groups<2>();
      case 3:
        return wait_for_groups<3>();
      case 4:
        return wait_for_groups<4>();
      case 5:
        return wait_for_groups<5>();
      case 6:
        return wait_for_groups<6>();
      default:
        return wait_for_groups<7>();
    }
  }

  /// Calls f(result, row, column) for the results of a thread that there are.
  template <class F>
  TN_INLINE void for_results(F f) const {
    TN_UNROLL
    for (int i = 0; i < Each; ++i) TN_UNROLL
    for (int j = 0; j < Each; ++j) {
      int r = row0 + row + Left::apart(i), c = column0 + column + Right::apart(j);
      if (r < p.m && c < p.n) f(i * Each + j, r, c);
    }
  }

  TN_INLINE void load_for_tail(float (&loaded)[kTailLoads][kResults]) const {
    TN_UNROLL
    for (int l = 0; l < kTailLoads; ++l) {
      TN_UNROLL
      for (float& x : loaded[l]) x = 0;
      if (!p.tail.out || l >= p.tail.loads) continue;
      const TailLoad& load = p.tail.load[l];
      for_results([&](int e, int r, int c)
                      TN_INLINE { loaded[l][e] = load.first[r * load.row + c * load.column]; });
    }
  }

  /// The elements of the sums from k0 to k1. Four are loaded while those before them are added;
  /// the last ones so loaded may not have come yet, and are loaded again.
  TN_INLINE void add(int k0, int k1) {
    constexpr int kStep = 4 * kVector;
    auto at_left = left.places_of(row, k0);
    auto at_right = right.places_of(column, k0);
    typename Left::template Elements<kVector> x[2];
    typename Right::template Elements<kVector> y[2];
    int k = k0;
    if (k + kStep <= k1) x[0].load(at_left, 0), y[0].load(at_right, 0);
    TN_UNROLL_BY(1)
    for (; k + kStep <= k1; k += kStep) {
      TN_UNROLL
      for (int j = 0; j < kStep; j += kVector) {
        int now = j / kVector % 2, next = 1 - now;
        x[next].load(at_left, j + kVector), y[next].load(at_right, j + kVector);
        multiply<kVector>(x[now], y[now]);
      }
      at_left.advance(kStep), at_right.advance(kStep);
    }
    TN_UNROLL_BY(1)
    for (; k + kVector <= k1; k += kVector) add_next<kVector>(at_left, at_right);
    TN_UNROLL_BY(1)
    for (; k < k1; ++k) add_next<1>(at_left, at_right);
  }
  template <int Count>
  TN_INLINE void add_next(typename Left::Places& at_left, typename Right::Places& at_right) {
    typename Left::template Elements<Count> x;
    typename Right::template Elements<Count> y;
    x.load(at_left, 0), y.load(at_right, 0);
    multiply<Count>(x, y);
    at_left.advance(Count), at_right.advance(Count);
  }
  template <int Count>
  TN_INLINE void multiply(const typename Left::template Elements<Count>& x,
                          const typename Right::template Elements<Count>& y) {
    TN_UNROLL
    for (int k = 0; k < Count; ++k) TN_UNROLL
    for (int i = 0; i < Each; ++i) TN_UNROLL
    for (int j = 0; j < Each; ++j)
      sum[i * Each + j] = __builtin_fmaf(x.at(i, k), y.at(j, k), sum[i * Each + j]);
  }

  TN_INLINE void store(const float (&loaded)[kTailLoads][kResults]) {
    bool has_tail = p.tail.out;
    if (!has_tail || p.tail.keeps_product) store_to(p.out);
    if (!has_tail) return;
    run_tail(p.tail, sum, loaded);
    store_to(p.tail.out);
  }
  TN_INLINE void store_to(float* out) const {
    for_results([&](int e, int r, int c) TN_INLINE { out[int64{r} * p.n + c] = sum[e]; });
  }

  const WholeProduct& p;
  Left left;
  Right right;
  int row0, column0;  // of the tile
  int row, column;    // of a thread's first result, in the tile
  float sum[kResults] = {};
};

/// A kernel `name` of tiles of form `Form`.
#define TN_WHOLE_KERNEL(name, Form, ...)                                             \
  TN_KERNEL(name, WholeProduct) {                                                    \
    static_assert(kTileForms[Form].is_whole && kTileForms[Form].side == kWholeSide); \
    WholeLoop<kTileForms[Form].each_m, __VA_ARGS__>(p, &shared<float>()).run();      \
  }
