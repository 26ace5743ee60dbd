#pragma once
// What kernels of attention have in common: the call, where rows lie, and softmax of tiles of
// scores as tensor cores leave them.
#include "backend/cuda/prebuilt/gpu_warps.h"

constexpr int kLeading = 5;
constexpr float kLog2E = 1.4426950408889634f, kNever = -__builtin_inff();

/// As in cuda_attention.cpp. Strides count elements, 0 repeats.
struct Attention {
  const void *q, *k, *v, *mask;
  void* out;
  int64 heads, extent[kLeading];  // of queries: their leading axes
  int64 q_at[kLeading], k_at[kLeading], v_at[kLeading], mask_at[kLeading];
  int64 q_row, q_column, k_row, k_column, v_row, v_column, mask_row, mask_column;
  int64 queries, keys, depth, out_depth;
  float scale;
  int causal;
  int mask_type;   // 0: none, 1: bool, 2: f32, 3: f16, 4: bf16
  int vectors;     // rows of k and v are read 16 bytes at a time
  int near_heads;  // heads whose keys and values are kept near at once
  int blocks;      // of the launch
};

/// As in cuda_attention.cpp. All operands but the mask lie row by row.
struct AttentionGradient {
  Attention a;
  const void* ct;
  void *q_ct, *k_ct, *v_ct;
  float *levels, *deltas;  // by row: the log of what scores are divided by; Σ ct·out
  int64 shared;            // heads of queries that have one of keys
};

/// Where the matrices of one head begin, in elements.
struct HeadPlaces {
  int64 q = 0, k = 0, v = 0, mask = 0;
};
inline HeadPlaces places_of(const Attention& p, int64 head) {
  HeadPlaces at;
  for (int i = kLeading - 1; i >= 0; --i) {
    int64 next = head / p.extent[i], j = head - next * p.extent[i];
    at.q += j * p.q_at[i], at.k += j * p.k_at[i], at.v += j * p.v_at[i];
    at.mask += j * p.mask_at[i], head = next;
  }
  return at;
}

/// How many keys a query sees, apart from the mask.
TN_INLINE inline int limit_of(const Attention& p, int64 query) {
  int64 seen = p.causal ? query + 1 + p.keys - p.queries : p.keys;
  return static_cast<int>(seen < 0 ? 0 : seen > p.keys ? p.keys : seen);
}

/// A score with its mask, both in units of log 2. `Type` is that of the mask.
template <int Type>
TN_INLINE inline float masked(const void* mask, int64 at, float score) {
  if constexpr (Type == 1) return static_cast<const uint8*>(mask)[at] ? score : kNever;
  float more;
  if constexpr (Type == 2)
    more = static_cast<const float*>(mask)[at];
  else if constexpr (Type == 3)
    more = widened(F16(), static_cast<const uint16*>(mask)[at]);
  else
    more = widened(BF16(), static_cast<const uint16*>(mask)[at]);
  return score + more * kLog2E;
}
template <class F>
TN_INLINE inline void with_mask(int type, F f) {
  if (type == 1) f.template operator()<1>();
  if (type == 2) f.template operator()<2>();
  if (type == 3) f.template operator()<3>();
  if (type == 4) f.template operator()<4>();
}

/// The two rows of a tile that a thread has a part of: elements i with i / 2 % 2 == r, in columns
/// 8 (i / 4) + 2 (lane % 4) + i % 2. Four neighbours have a whole row.
struct RowPair {
  float largest[2] = {kNever, kNever};  // in units of the scores
  float total[2] = {0, 0};              // of the columns of this thread
};
TN_INLINE inline float total_of_four(float x) {
  x += from_lane_xor(x, 1);
  return x + from_lane_xor(x, 2);
}
TN_INLINE inline int column_of(int i) { return i / 4 * 8 + lane() % 4 * 2 + i % 2; }

/// Scores become weights 2^(scale·(score − largest)); `shrink` is what earlier ones are now worth.
/// Each row has several chains, and both go on together: each instruction waits for its operands.
template <int N>
TN_INLINE inline void weigh(float (&s)[N], RowPair& rows, float scale, float (&shrink)[2]) {
  constexpr int kChains = 4;
  float most[2], shift[2], sum[2][2] = {};
  TN_UNROLL
  for (int r = 0; r < 2; ++r) {
    float of_chain[kChains];
    TN_UNROLL
    for (int i = 0; i < N / 4; ++i) {
      float pair = larger(s[4 * i + 2 * r], s[4 * i + 2 * r + 1]);
      of_chain[i % kChains] = i < kChains ? pair : larger(of_chain[i % kChains], pair);
    }
    most[r] = larger(larger(of_chain[0], of_chain[1]), larger(of_chain[2], of_chain[3]));
    most[r] = larger(most[r], rows.largest[r]);
  }
  TN_UNROLL
  for (int mask = 1; mask <= 2; ++mask) {
    float other[2] = {from_lane_xor(most[0], mask), from_lane_xor(most[1], mask)};
    most[0] = larger(most[0], other[0]), most[1] = larger(most[1], other[1]);
  }
  TN_UNROLL
  for (int r = 0; r < 2; ++r) {
    shift[r] = most[r] == kNever ? 0 : most[r] * scale;
    shrink[r] = exp2_of(__builtin_fmaf(rows.largest[r], scale, -shift[r]));
    rows.largest[r] = most[r];
  }
  TN_UNROLL
  for (int i = 0; i < N; i += 2) {
    int r = i / 2 % 2;
    s[i] = exp2_of(__builtin_fmaf(s[i], scale, -shift[r]));
    s[i + 1] = exp2_of(__builtin_fmaf(s[i + 1], scale, -shift[r]));
    sum[r][i / 4 % 2] += s[i] + s[i + 1];
  }
  TN_UNROLL
  for (int r = 0; r < 2; ++r)
    rows.total[r] = __builtin_fmaf(rows.total[r], shrink[r], sum[r][0] + sum[r][1]);
}

/// Keys beyond what the two queries see have no weight.
template <int N>
TN_INLINE inline void hide(float (&s)[N], int first_key, const int (&limit)[2]) {
  TN_UNROLL
  for (int i = 0; i < N; ++i)
    if (first_key + column_of(i) >= limit[i / 2 % 2]) s[i] = kNever;
}

/// Columns of row r of a thread, times a factor.
template <class T, int N>
TN_INLINE inline void store_row(uint16* to, int64 depth, const float (&o)[N], int r, float factor) {
  TN_UNROLL
  for (int i = 2 * r; i < N; i += 4) {
    int column = column_of(i);
    uint32 pair = packed<T>(o[i] * factor, o[i + 1] * factor);
    if (depth % 2 == 0) {
      if (column < depth) *reinterpret_cast<uint32*>(to + column) = pair;
    } else {
      if (column < depth) to[column] = static_cast<uint16>(pair);
      if (column + 1 < depth) to[column + 1] = static_cast<uint16>(pair >> 16);
    }
  }
}
/// Rows of a thread, divided by their totals.
template <class T, int N>
TN_INLINE inline void store_rows(const Attention& p, int64 head, int64 query0, const float (&o)[N],
                                 const RowPair& rows) {
  TN_UNROLL
  for (int r = 0; r < 2; ++r) {
    float total = total_of_four(rows.total[r]), factor = total == 0 ? 1 : 1 / total;
    int64 query = query0 + 8 * r;
    auto* to = static_cast<uint16*>(p.out) + (head * p.queries + query) * p.out_depth;
    if (query < p.queries) store_row<T>(to, p.out_depth, o, r, factor);
  }
}

/// Four words of 16 bytes that are stored at once.
struct alignas(16) FourWords {
  uint32 at[4];
};
/// `a` of lanes where `bit` is not set with `b` of those where it is.
TN_INLINE inline void exchange(uint32& a, uint32& b, int bit) {
  bool is_high = lane() & bit;
  float given = __builtin_bit_cast(float, is_high ? a : b);
  (is_high ? a : b) = __builtin_bit_cast(uint32, from_lane_xor(given, bit));
}
/// As store_rows, 16 bytes at a time: four neighbours have the columns 8i to 8i + 7 of a row in
/// parts, and after an exchange each has all of one i of four. Rows of results are whole vectors.
template <class T, int N>
TN_INLINE inline void store_vectors(const Attention& p, int64 head, int64 query0,
                                    const float (&o)[N], const RowPair& rows) {
  TN_UNROLL
  for (int r = 0; r < 2; ++r) {
    float total = total_of_four(rows.total[r]), factor = total == 0 ? 1 : 1 / total;
    int64 query = query0 + 8 * r;
    auto* to = static_cast<uint16*>(p.out) + (head * p.queries + query) * p.out_depth;
    TN_UNROLL
    for (int first = 0; first < N / 4; first += 4) {
      FourWords words;
      TN_UNROLL
      for (int j = 0; j < 4; ++j) {
        int i = (first + j) * 4 + 2 * r;
        words.at[j] = packed<T>(o[i] * factor, o[i + 1] * factor);
      }
      exchange(words.at[0], words.at[1], 1), exchange(words.at[2], words.at[3], 1);
      exchange(words.at[0], words.at[2], 2), exchange(words.at[1], words.at[3], 2);
      int column = (first + lane() % 4) * 8;
      if (query < p.queries && column < p.out_depth)
        *reinterpret_cast<FourWords*>(to + column) = words;
    }
  }
}
