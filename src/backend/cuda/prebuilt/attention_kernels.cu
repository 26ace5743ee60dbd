// Attention for GPUs: softmax(scale·Q·Kᵀ + mask)·V, tile by tile, with a running largest score and
// total. Of f16 and bf16 by tensor cores, of f32 by fused multiply-adds. The build compiles this to
// PTX (cmake/prebuilt.cmake).
#include "backend/cuda/prebuilt/attention_tiles.h"

constexpr int kQueries = 128, kKeys = 64;  // of a tile; a warp has 16 queries

template <int D>
struct TensorRoom {
  Rows<kKeys, D> k[2], v[2];
};

template <class T, int D>
TN_INLINE inline void attend_by_tensors(const Attention& p, TensorRoom<D>& room) {
  int64 tiles = (p.queries + kQueries - 1) / kQueries;
  int64 head = block() / tiles, tile = tiles - 1 - (block() - head * tiles);  // the longest first
  HeadPlaces at = places_of(p, head);
  int64 query0 = tile * kQueries, last = query0 + kQueries;
  int seen = limit_of(p, (last < p.queries ? last : p.queries) - 1);
  int64 own = query0 + warp() * 16 + lane() / 4;
  int limit[2] = {own < p.queries ? limit_of(p, own) : 0,
                  own + 8 < p.queries ? limit_of(p, own + 8) : 0};
  Source k{static_cast<const uint16*>(p.k) + at.k, p.k_row,   p.k_column, static_cast<int>(p.keys),
           static_cast<int>(p.depth),              !!p.vectors};
  Source v{static_cast<const uint16*>(p.v) + at.v, p.v_row,   p.v_column, static_cast<int>(p.keys),
           static_cast<int>(p.out_depth),          !!p.vectors};
  if (seen > 0) bring(k, 0, room.k[0]), bring(v, 0, room.v[0]);
  close_copies();
  uint32 q[D / 16][4];
  TN_UNROLL
  for (int i = 0; i < D / 16; ++i)
    TN_UNROLL
    for (int j = 0; j < 4; ++j) {
      int64 row = own + j % 2 * 8;
      int column = i * 16 + j / 2 * 8 + lane() % 4 * 2;
      auto* x = static_cast<const uint16*>(p.q) + at.q + row * p.q_row + column * p.q_column;
      bool wanted = row < p.queries;
      uint32 low = wanted && column < p.depth ? x[0] : 0;
      uint32 high = wanted && column + 1 < p.depth ? x[p.q_column] : 0;
      q[i][j] = low | high << 16;
    }
  float o[D / 2] = {}, scale = p.scale * kLog2E;
  RowPair rows;
  for (int first = 0, side = 0; first < seen; first += kKeys, side ^= 1) {
    if (first + kKeys < seen)
      bring(k, first + kKeys, room.k[side ^ 1]), bring(v, first + kKeys, room.v[side ^ 1]);
    close_copies();
    wait_copies<1>();
    meet_all(kThreads);
    float s[kKeys / 2] = {};
    TN_UNROLL
    for (int i = 0; i < D / 16; ++i)
      TN_UNROLL
      for (int n = 0; n < kKeys / 16; ++n) {
        uint32 b[4];
        load_right(b, room.k[side], n * 16, i);
        multiply_pair<T>(s + n * 8, q[i], b);
      }
    TN_UNROLL
    for (int i = 0; i < kKeys / 2; ++i) s[i] *= scale;
    with_mask(p.mask_type, [&]<int Type>() TN_INLINE {
      TN_UNROLL
      for (int i = 0; i < kKeys / 2; ++i) {
        int key = first + column_of(i), r = i / 2 % 2;
        int64 place = at.mask + (own + 8 * r) * p.mask_row + key * p.mask_column;
        if (key < limit[r]) s[i] = masked<Type>(p.mask, place, s[i]);
      }
    });
    if (first + kKeys > limit_of(p, query0)) hide(s, first, limit);
    float shrink[2];
    weigh(s, rows, 1, shrink);
    TN_UNROLL
    for (int i = 0; i < D / 2; ++i) o[i] *= shrink[i / 2 % 2];
    TN_UNROLL
    for (int i = 0; i < kKeys / 16; ++i) {
      uint32 a[4];
      as_left<T>(a, s, i);
      TN_UNROLL
      for (int n = 0; n < D / 16; ++n) {
        uint32 b[4];
        load_right_turned(b, room.v[side], i * 16, n);
        multiply_pair<T>(o + n * 8, a, b);
      }
    }
    meet_all(kThreads);
  }
  store_rows<T>(p, head, own, o, rows);
}

#define TENSOR_KERNEL(name, T, D) \
  TN_KERNEL(attention_##name##_##D, Attention) { attend_by_tensors<T, D>(p, shared<TensorRoom<D>>()); }
TENSOR_KERNEL(f16, F16, 64)
TENSOR_KERNEL(f16, F16, 128)
TENSOR_KERNEL(bf16, BF16, 64)
TENSOR_KERNEL(bf16, BF16, 128)

// float32: a thread has 4 queries and every 16th column.
constexpr int kSide = 64;
template <int D>
struct PlainRoom {
  float q[kSide][D + 1], k[kSide][D + 1], v[kSide][D + 1], weights[kSide][kSide + 1];
};

template <int D>
TN_INLINE inline void bring_plain(const float* from, int64 row, int64 column, int64 first,
                                  int64 count, int64 depth, float (*to)[D + 1]) {
  for (int i = thread(); i < kSide * D; i += kThreads) {
    int r = i / D, c = i % D;
    to[r][c] = first + r < count && c < depth ? from[(first + r) * row + c * column] : 0;
  }
}

TN_INLINE inline float over_row(float x, bool is_sum) {
  TN_UNROLL
  for (int mask = 8; mask > 0; mask /= 2) {
    float other = from_lane_xor(x, mask);
    x = is_sum ? x + other : larger(x, other);
  }
  return x;
}

template <int D>
TN_INLINE inline void attend_plain(const Attention& p, PlainRoom<D>& room) {
  int64 tiles = (p.queries + kSide - 1) / kSide;
  int64 head = block() / tiles, tile = tiles - 1 - (block() - head * tiles);
  HeadPlaces at = places_of(p, head);
  int64 query0 = tile * kSide, last = query0 + kSide;
  int seen = limit_of(p, (last < p.queries ? last : p.queries) - 1);
  int ti = thread() / 16, tj = thread() % 16;
  bring_plain<D>(static_cast<const float*>(p.q) + at.q, p.q_row, p.q_column, query0, p.queries,
                 p.depth, room.q);
  float scale = p.scale * kLog2E;
  float o[4][D / 16] = {}, largest[4] = {kNever, kNever, kNever, kNever}, total[4] = {};
  for (int first = 0; first < seen; first += kSide) {
    meet_all(kThreads);
    bring_plain<D>(static_cast<const float*>(p.k) + at.k, p.k_row, p.k_column, first, p.keys,
                   p.depth, room.k);
    bring_plain<D>(static_cast<const float*>(p.v) + at.v, p.v_row, p.v_column, first, p.keys,
                   p.out_depth, room.v);
    meet_all(kThreads);
    float s[4][4] = {};
    TN_UNROLL_BY(4)
    for (int c = 0; c < D; ++c)
      TN_UNROLL
      for (int i = 0; i < 4; ++i)
        TN_UNROLL
        for (int j = 0; j < 4; ++j)
          s[i][j] = __builtin_fmaf(room.q[ti * 4 + i][c], room.k[tj + 16 * j][c], s[i][j]);
    TN_UNROLL
    for (int i = 0; i < 4; ++i) {
      int64 query = query0 + ti * 4 + i;
      int limit = query < p.queries ? limit_of(p, query) : 0;
      float most = largest[i];
      TN_UNROLL
      for (int j = 0; j < 4; ++j) {
        int key = first + tj + 16 * j;
        s[i][j] *= scale;
        with_mask(p.mask_type, [&]<int Type>() TN_INLINE {
          int64 place = at.mask + query * p.mask_row + key * p.mask_column;
          if (key < limit) s[i][j] = masked<Type>(p.mask, place, s[i][j]);
        });
        if (key >= limit) s[i][j] = kNever;
        most = larger(most, s[i][j]);
      }
      most = over_row(most, false);
      float shift = most == kNever ? 0 : most, shrink = exp2_of(largest[i] - shift), sum = 0;
      TN_UNROLL
      for (int j = 0; j < 4; ++j) {
        float weight = exp2_of(s[i][j] - shift);
        sum += weight;
        room.weights[ti * 4 + i][tj + 16 * j] = weight;
      }
      total[i] = __builtin_fmaf(total[i], shrink, sum), largest[i] = most;
      TN_UNROLL
      for (int j = 0; j < D / 16; ++j) o[i][j] *= shrink;
    }
    meet_warp();  // a row's weights are of one warp
    TN_UNROLL_BY(4)
    for (int c = 0; c < kSide; ++c)
      TN_UNROLL
      for (int i = 0; i < 4; ++i)
        TN_UNROLL
        for (int j = 0; j < D / 16; ++j)
          o[i][j] = __builtin_fmaf(room.weights[ti * 4 + i][c], room.v[c][tj + 16 * j], o[i][j]);
  }
  TN_UNROLL
  for (int i = 0; i < 4; ++i) {
    int64 query = query0 + ti * 4 + i;
    float sum = over_row(total[i], true), divisor = sum == 0 ? 1 : sum;
    if (query >= p.queries) continue;
    auto* to = static_cast<float*>(p.out) + (head * p.queries + query) * p.out_depth;
    TN_UNROLL
    for (int j = 0; j < D / 16; ++j)
      if (tj + 16 * j < p.out_depth) to[tj + 16 * j] = o[i][j] / divisor;
  }
}

TN_KERNEL(attention_f32_64, Attention) { attend_plain<64>(p, shared<PlainRoom<64>>()); }
TN_KERNEL(attention_f32_128, Attention) { attend_plain<128>(p, shared<PlainRoom<128>>()); }
