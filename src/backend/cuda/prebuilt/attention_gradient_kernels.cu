// Derivatives of attention for GPUs, of f16 and bf16, by tensor cores. One kernel has the rows of
// q's cotangent: it finds the largest score and the total of each row again, then sums over keys.
// The other has the rows of those of k and v, and sums over queries, and over the heads that share
// a key head. Each sum has one order, so results repeat. The build compiles this to PTX
// (cmake/prebuilt.cmake).
#include "backend/cuda/prebuilt/attention_tiles.h"

/// As in cuda_attention.cpp. All operands but the mask lie row by row.
struct AttentionGradient {
  Attention a;
  const void* ct;
  void *q_ct, *k_ct, *v_ct;
  float *levels, *deltas;  // by row: the log of what scores are divided by; Σ ct·out
  int64 shared;            // heads of queries that have one of keys
};

constexpr int kOwnRows = 128;  // of a block: 16 of each warp
/// Rows of the other operands that are near at once. With the own rows they fit in 96 KiB, which
/// every GPU of compute capability 8.0 and later has.
template <int D>
constexpr int kKeysOfStep = D == 64 ? 64 : 32;
constexpr int kQueriesOfStep = 32;

inline Source rows_at(const Attention& p, const void* x, int64 head, int64 count, int64 depth) {
  return {static_cast<const uint16*>(x) + head * count * depth, depth, 1, static_cast<int>(count),
          static_cast<int>(depth), p.vectors && depth % 8 == 0};
}

/// sum += 16 rows of one tile · the rows of another
template <class T, int N, int M, int D>
TN_INLINE inline void add_scores(float (&sum)[M / 2], Rows<N, D>& left, int row,
                                 Rows<M, D>& right) {
  TN_UNROLL
  for (int i = 0; i < D / 16; ++i) {
    uint32 a[4], b[4];
    load_left(a, left, row, i);
    TN_UNROLL
    for (int n = 0; n < M / 16; ++n) {
      load_right(b, right, n * 16, i);
      multiply_pair<T>(sum + n * 8, a, b);
    }
  }
}
/// sum += weights · tile
template <class T, int M, int D>
TN_INLINE inline void add_product(float (&sum)[D / 2], const float (&weights)[M / 2],
                                  Rows<M, D>& tile) {
  TN_UNROLL
  for (int i = 0; i < M / 16; ++i) {
    uint32 a[4], b[4];
    as_left<T>(a, weights, i);
    TN_UNROLL
    for (int n = 0; n < D / 16; ++n) {
      load_right_turned(b, tile, i * 16, n);
      multiply_pair<T>(sum + n * 8, a, b);
    }
  }
}

template <int D>
struct QueryRoom {
  Rows<kOwnRows, D> q, ct;
  Rows<kKeysOfStep<D>, D> k[2], v[2];
};

template <class T, int D>
TN_INLINE inline void query_cotangents(const AttentionGradient& g, QueryRoom<D>& room) {
  const Attention& p = g.a;
  constexpr int M = kKeysOfStep<D>;
  int64 tiles = (p.queries + kOwnRows - 1) / kOwnRows;
  int64 head = block() / tiles, tile = tiles - 1 - (block() - head * tiles);
  int64 query0 = tile * kOwnRows, last = query0 + kOwnRows, mask_at = places_of(p, head).mask;
  int seen = limit_of(p, (last < p.queries ? last : p.queries) - 1);
  int row0 = warp() * 16;
  int64 own = query0 + row0 + lane() / 4;
  int limit[2] = {own < p.queries ? limit_of(p, own) : 0,
                  own + 8 < p.queries ? limit_of(p, own + 8) : 0};
  Source k = rows_at(p, p.k, head / g.shared, p.keys, p.depth);
  Source v = rows_at(p, p.v, head / g.shared, p.keys, p.out_depth);
  Source ct = rows_at(p, g.ct, head, p.queries, p.out_depth);
  Source out = rows_at(p, p.out, head, p.queries, p.out_depth);
  bring(rows_at(p, p.q, head, p.queries, p.depth), static_cast<int>(query0), room.q);
  bring(ct, static_cast<int>(query0), room.ct);
  close_copies();
  float scale = p.scale * kLog2E;
  int plain = limit_of(p, query0);  // keys that all queries see
  auto score = [&](float (&s)[M / 2], Rows<M, D>& keys, int first) TN_INLINE {
    TN_UNROLL
    for (int i = 0; i < M / 2; ++i) s[i] = 0;
    add_scores<T>(s, room.q, row0, keys);
    TN_UNROLL
    for (int i = 0; i < M / 2; ++i) s[i] *= scale;
    with_mask(p.mask_type, [&]<int Type>() TN_INLINE {
      TN_UNROLL
      for (int i = 0; i < M / 2; ++i) {
        int key = first + column_of(i), r = i / 2 % 2;
        int64 place = mask_at + (own + 8 * r) * p.mask_row + key * p.mask_column;
        if (key < limit[r]) s[i] = masked<Type>(p.mask, place, s[i]);
      }
    });
    if (first + M > plain) hide(s, first, limit);
  };
  RowPair rows;
  if (seen > 0) bring(k, 0, room.k[0]);
  close_copies();
  TN_UNROLL_BY(1)
  for (int first = 0, side = 0; first < seen; first += M, side ^= 1) {
    if (first + M < seen) bring(k, first + M, room.k[side ^ 1]);
    close_copies();
    wait_copies<1>();
    meet_all(kThreads);
    float s[M / 2], shrink[2];
    score(s, room.k[side], first);
    weigh(s, rows, 1, shrink);
    meet_all(kThreads);
  }
  float level[2], delta[2];
  TN_UNROLL
  for (int r = 0; r < 2; ++r) {
    float total = total_of_four(rows.total[r]), sum = 0;
    level[r] = total == 0 ? 0 : rows.largest[r] + log2_of(total);
    int64 query = own + 8 * r;
    for (int c = lane() % 4; c < p.out_depth && query < p.queries; c += 4)
      sum = __builtin_fmaf(widened(T(), ct.at[query * p.out_depth + c]),
                           widened(T(), out.at[query * p.out_depth + c]), sum);
    delta[r] = total_of_four(sum);
    if (lane() % 4 == 0 && query < p.queries) {
      g.levels[head * p.queries + query] = level[r];
      g.deltas[head * p.queries + query] = delta[r];
    }
  }
  float sum[D / 2] = {};
  if (seen > 0) bring(k, 0, room.k[0]), bring(v, 0, room.v[0]);
  close_copies();
  TN_UNROLL_BY(1)
  for (int first = 0, side = 0; first < seen; first += M, side ^= 1) {
    if (first + M < seen)
      bring(k, first + M, room.k[side ^ 1]), bring(v, first + M, room.v[side ^ 1]);
    close_copies();
    wait_copies<1>();
    meet_all(kThreads);
    float s[M / 2], t[M / 2];
    score(s, room.k[side], first);
    TN_UNROLL
    for (int i = 0; i < M / 2; ++i) t[i] = -delta[i / 2 % 2];
    add_scores<T>(t, room.ct, row0, room.v[side]);
    TN_UNROLL
    for (int i = 0; i < M / 2; ++i) s[i] = exp2_of(s[i] - level[i / 2 % 2]) * t[i];
    add_product<T>(sum, s, room.k[side]);
    meet_all(kThreads);
  }
  TN_UNROLL
  for (int r = 0; r < 2; ++r)
    if (own + 8 * r < p.queries)
      store_row<T>(static_cast<uint16*>(g.q_ct) + (head * p.queries + own + 8 * r) * p.depth,
                   p.depth, sum, r, p.scale);
}

template <int D>
struct KeyRoom {
  Rows<kOwnRows, D> k, v;
  Rows<kQueriesOfStep, D> q[2], ct[2];
};

/// Scores lie turned: a thread has two keys, and columns are queries.
template <class T, int D>
TN_INLINE inline void key_cotangents(const AttentionGradient& g, KeyRoom<D>& room) {
  const Attention& p = g.a;
  constexpr int M = kQueriesOfStep;
  int64 tiles = (p.keys + kOwnRows - 1) / kOwnRows;
  int64 key_head = block() / tiles, key0 = (block() - key_head * tiles) * kOwnRows;
  int row0 = warp() * 16, own = static_cast<int>(key0) + row0 + lane() / 4;
  bring(rows_at(p, p.k, key_head, p.keys, p.depth), static_cast<int>(key0), room.k);
  bring(rows_at(p, p.v, key_head, p.keys, p.out_depth), static_cast<int>(key0), room.v);
  close_copies();
  int64 first_seeing = p.causal ? key0 + p.queries - p.keys : 0;  // queries that see the first key
  int start = first_seeing <= 0 ? 0 : static_cast<int>(first_seeing / M * M);
  int queries = static_cast<int>(p.queries), keys = static_cast<int>(p.keys);
  int more = p.causal ? keys - queries : keys;  // keys that the first query sees beyond its own
  float k_sum[D / 2] = {}, v_sum[D / 2] = {}, scale = p.scale * kLog2E;
  TN_UNROLL_BY(1)
  for (int i = 0; i < g.shared; ++i) {
    int64 head = key_head * g.shared + i;
    Source q = rows_at(p, p.q, head, p.queries, p.depth);
    Source ct = rows_at(p, g.ct, head, p.queries, p.out_depth);
    int64 mask_at = places_of(p, head).mask;
    const float *levels = g.levels + head * p.queries, *deltas = g.deltas + head * p.queries;
    if (start < queries) bring(q, start, room.q[0]), bring(ct, start, room.ct[0]);
    close_copies();
    TN_UNROLL_BY(1)
    for (int first = start, side = 0; first < queries; first += M, side ^= 1) {
      if (first + M < queries)
        bring(q, first + M, room.q[side ^ 1]), bring(ct, first + M, room.ct[side ^ 1]);
      close_copies();
      wait_copies<1>();
      meet_all(kThreads);
      float s[M / 2] = {}, t[M / 2], level[M / 4];
      TN_UNROLL
      for (int i = 0; i < M / 2; ++i)
        if (int query = first + column_of(i); i / 2 % 2 == 0)
          level[i / 4 * 2 + i % 2] = query < queries ? levels[query] : 0;
      add_scores<T>(s, room.k, row0, room.q[side]);
      with_mask(p.mask_type, [&]<int Type>() TN_INLINE {
        TN_UNROLL
        for (int i = 0; i < M / 2; ++i) {
          int query = first + column_of(i), key = own + i / 2 % 2 * 8;
          int64 place = mask_at + query * p.mask_row + key * p.mask_column;
          s[i] *= scale;
          if (query < queries && key < keys) s[i] = masked<Type>(p.mask, place, s[i]);
        }
      });
      float factor = p.mask_type ? 1 : scale;
      TN_UNROLL
      for (int i = 0; i < M / 2; ++i) {
        int query = first + column_of(i), key = own + i / 2 % 2 * 8;
        bool is_seen = query < queries && key < keys && key <= query + more;
        float weight = exp2_of(__builtin_fmaf(s[i], factor, -level[i / 4 * 2 + i % 2]));
        s[i] = is_seen ? weight : 0;
      }
      add_product<T>(v_sum, s, room.ct[side]);
      TN_UNROLL
      for (int i = 0; i < M / 2; ++i) {
        int query = first + column_of(i);
        t[i] = query < queries ? -deltas[query] : 0;
      }
      add_scores<T>(t, room.v, row0, room.ct[side]);
      TN_UNROLL
      for (int i = 0; i < M / 2; ++i) s[i] *= t[i];
      add_product<T>(k_sum, s, room.q[side]);
      meet_all(kThreads);
    }
  }
  TN_UNROLL
  for (int r = 0; r < 2; ++r) {
    int64 key = key_head * p.keys + own + 8 * r;
    if (own + 8 * r >= keys) continue;
    store_row<T>(static_cast<uint16*>(g.k_ct) + key * p.depth, p.depth, k_sum, r, p.scale);
    store_row<T>(static_cast<uint16*>(g.v_ct) + key * p.out_depth, p.out_depth, v_sum, r, 1);
  }
}

#define GRADIENT_KERNELS(name, T, D)                             \
  TN_KERNEL(attention_queries_##name##_##D, AttentionGradient) { \
    query_cotangents<T, D>(p, shared<QueryRoom<D>>());           \
  }                                                              \
  TN_KERNEL(attention_keys_##name##_##D, AttentionGradient) {    \
    key_cotangents<T, D>(p, shared<KeyRoom<D>>());               \
  }
GRADIENT_KERNELS(f16, F16, 64)
GRADIENT_KERNELS(f16, F16, 128)
GRADIENT_KERNELS(bf16, BF16, 64)
GRADIENT_KERNELS(bf16, BF16, 128)
