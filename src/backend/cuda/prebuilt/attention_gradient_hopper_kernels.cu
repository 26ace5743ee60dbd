// Derivatives of attention of f16 and bf16 for GPUs of compute capability 9.0, whose tensor cores
// read shared memory themselves; without a mask. As in attention_gradient_kernels.cu one kernel has
// rows of q's cotangent, the other rows of those of k and v. One warp group brings tiles, two have
// 64 rows each. The build compiles this to PTX (cmake/prebuilt.cmake).
#include "backend/cuda/prebuilt/attention_parts.h"
#include "backend/cuda/prebuilt/gpu_warp_groups.h"

namespace hopper_gradient {

constexpr int kThreads = 384, kBringers = 128, kUserWarps = 8;
constexpr int kOwn = 128, kStep = 64, kStages = 4;  // rows of a block, and of each stage
constexpr int kOwnPanel = kOwn * 128, kStepPanel = kStep * 128;  // bytes of 64 columns of a tile

/// Own tiles: q and its result's cotangent, or k and v. Those of a stage are the others.
template <int D>
struct Room {
  char own[2][D / 64 * kOwnPanel], tiles[kStages][2][D / 64 * kStepPanel];
  float levels[kStages][kStep], deltas[kStages][kStep];  // of the queries of a stage
  Barrier own_full, full[kStages], free[kStages];
};

struct Place {
  int at = 0, round = 0;
  TN_INLINE void next() {
    if (++at == kStages) at = 0, round ^= 1;
  }
};

struct Operand {
  const uint16* at;
  int count, depth;  // rows, and columns of each, which lie side by side
};
inline Operand operand(const void* x, int64 head, int64 count, int64 depth) {
  return {static_cast<const uint16*>(x) + head * count * depth, static_cast<int>(count),
          static_cast<int>(depth)};
}

/// Rows from `first` on as a tile; zeros beyond the last one and beyond the depth.
template <int D, int N>
TN_INLINE inline void bring(const Operand& from, int first, char* tile) {
  constexpr int kPieces = D / 8, kRows = kBringers / kPieces;
  int self = thread() % kBringers, piece = self % kPieces, r = self / kPieces;
  bool is_inside = piece * 8 < from.depth;
  char* to = tile + piece / 8 * (N * 128) + r * 128 + (piece % 8 ^ r % 8) * 16;
  const uint16* x = from.at + int64{first + r} * from.depth + piece * 8;
  TN_UNROLL_BY(4)
  for (int i = 0; i < N / kRows; ++i) {
    bool wanted = is_inside && first + r + i * kRows < from.count;
    copy_near(to + i * kRows * 128, wanted ? x + int64{i * kRows} * from.depth : from.at, wanted);
  }
}

/// A warp group with 64 own rows.
template <class T, int D>
struct User {
  Room<D>& room;
  int group;  // 0 or 1
  Place at = {};

  /// s = own rows · rows of a tile
  TN_INLINE void score(float (&s)[kStep / 2], int number) {
    Matrix own = matrix_at(room.own[number] + group * (kOwnPanel / 2), 16, 1024);
    Matrix tile = matrix_at(room.tiles[at.at][number], 16, 1024);
    begin_products();
    TN_UNROLL
    for (int i = 0; i < D / 16; ++i)
      multiply_rows<T>(s, moved(own, i / 4 * kOwnPanel + i % 4 * 32),
                       moved(tile, i / 4 * kStepPanel + i % 4 * 32), i > 0);
    close_products();
  }
  /// sum += weights · tile
  TN_INLINE void add(float (&sum)[D / 2], const uint32 (&weights)[kStep / 16][4], int number) {
    Matrix tile = matrix_at(room.tiles[at.at][number], kStepPanel, 1024);
    begin_products();
    TN_UNROLL
    for (int i = 0; i < kStep / 16; ++i)
      multiply_columns<T>(sum, weights[i], moved(tile, i * 16 * 128));
    close_products();
  }
  TN_INLINE void narrow(const float (&s)[kStep / 2], uint32 (&weights)[kStep / 16][4]) {
    TN_UNROLL
    for (int i = 0; i < kStep / 4; ++i) weights[i / 4][i % 4] = packed<T>(s[i * 2], s[i * 2 + 1]);
  }
  TN_INLINE void begin() {
    wait(room.full[at.at], at.round);
    show_to_products();
  }
  /// The stage was read by all of the warp.
  TN_INLINE void leave() {
    meet_warp();
    if (lane() == 0) arrive(room.free[at.at]);
    at.next();
  }
};

template <int D>
TN_INLINE inline Room<D>& prepared_room() {
  auto start = reinterpret_cast<uint64>(&shared<char>());
  auto& room = *reinterpret_cast<Room<D>*>((start + 1023) / 1024 * 1024);
  if (thread() == 0) {
    prepare(room.own_full, kBringers);
    for (int i = 0; i < kStages; ++i)
      prepare(room.full[i], kBringers), prepare(room.free[i], kUserWarps);
  }
  meet_all(kThreads);
  return room;
}

/// A tile of queries of one head, the longest first.
struct Queries {
  int64 head;
  int first, tiles, plain;  // tiles of keys; the first ones, of which all queries see all
};
TN_INLINE inline Queries queries_of_block(const Attention& p) {
  int64 of_head = (p.queries + kOwn - 1) / kOwn, head = block() / of_head;
  int64 first = (of_head - 1 - (block() - head * of_head)) * kOwn, last = first + kOwn;
  int seen = limit_of(p, (last < p.queries ? last : p.queries) - 1);
  return {head, static_cast<int>(first), (seen + kStep - 1) / kStep, limit_of(p, first) / kStep};
}

template <int D>
TN_INLINE inline void bring_keys(const AttentionGradient& g, Room<D>& room) {
  const Attention& p = g.a;
  Queries own = queries_of_block(p);
  bring<D, kOwn>(operand(p.q, own.head, p.queries, p.depth), own.first, room.own[0]);
  bring<D, kOwn>(operand(g.ct, own.head, p.queries, p.out_depth), own.first, room.own[1]);
  arrive_after_copies(room.own_full);
  Operand k = operand(p.k, own.head / g.shared, p.keys, p.depth);
  Operand v = operand(p.v, own.head / g.shared, p.keys, p.out_depth);
  Place at;
  TN_UNROLL_BY(1)
  for (int step = 0; step < 2 * own.tiles; ++step, at.next()) {
    bool is_again = step >= own.tiles;
    int first = (is_again ? step - own.tiles : step) * kStep;
    wait(room.free[at.at], at.round ^ 1);
    bring<D, kStep>(k, first, room.tiles[at.at][0]);
    if (is_again) bring<D, kStep>(v, first, room.tiles[at.at][1]);
    arrive_after_copies(room.full[at.at]);
  }
}

/// The sum of ct·out of one query, whose columns four threads share.
template <class T>
TN_INLINE inline float delta_of(const AttentionGradient& g, int64 row) {
  const Attention& p = g.a;
  auto* ct = static_cast<const uint16*>(g.ct) + row * p.out_depth;
  auto* out = static_cast<const uint16*>(p.out) + row * p.out_depth;
  float sum = 0;
  for (int c = lane() % 4; c < p.out_depth; c += 4)
    sum = __builtin_fmaf(widened(T(), ct[c]), widened(T(), out[c]), sum);
  return sum;
}

template <class T, int D>
TN_INLINE inline void query_cotangents(const AttentionGradient& g, Room<D>& room, int group) {
  const Attention& p = g.a;
  Queries block = queries_of_block(p);
  User<T, D> user{room, group};
  int64 own = block.first + group * 64 + warp() % 4 * 16 + lane() / 4;
  int limit[2] = {own < p.queries ? limit_of(p, own) : 0,
                  own + 8 < p.queries ? limit_of(p, own + 8) : 0};
  float scale = p.scale * kLog2E, level[2], delta[2], sum[D / 2] = {};
  RowPair rows;
  wait(room.own_full, 0);
  TN_UNROLL_BY(1)
  for (int tile = 0; tile < block.tiles; ++tile) {
    float s[kStep / 2], shrink[2];
    user.begin();
    user.score(s, 0);
    wait_products<0>(s);
    user.leave();
    if (tile >= block.plain) hide(s, tile * kStep, limit);
    weigh(s, rows, scale, shrink);
  }
  TN_UNROLL
  for (int r = 0; r < 2; ++r) {
    int64 row = block.head * p.queries + own + 8 * r;
    float total = total_of_four(rows.total[r]);
    level[r] = total == 0 ? 0 : __builtin_fmaf(rows.largest[r], scale, log2_of(total));
    delta[r] = total_of_four(own + 8 * r < p.queries ? delta_of<T>(g, row) : 0);
    if (lane() % 4 == 0 && own + 8 * r < p.queries)
      g.levels[row] = level[r], g.deltas[row] = delta[r];
  }
  TN_UNROLL_BY(1)
  for (int tile = 0; tile < block.tiles; ++tile) {
    float s[kStep / 2], t[kStep / 2];
    uint32 weights[kStep / 16][4];
    user.begin();
    user.score(s, 0);
    user.score(t, 1);
    wait_products<1>(s);
    if (tile >= block.plain) hide(s, tile * kStep, limit);
    TN_UNROLL
    for (int i = 0; i < kStep / 2; ++i)
      s[i] = exp2_of(__builtin_fmaf(s[i], scale, -level[i / 2 % 2]));
    wait_products<0>(t);
    TN_UNROLL
    for (int i = 0; i < kStep / 2; ++i) s[i] *= t[i] - delta[i / 2 % 2];
    user.narrow(s, weights);
    user.add(sum, weights, 0);
    wait_products<0>(sum);
    user.leave();
  }
  TN_UNROLL
  for (int r = 0; r < 2; ++r)
    if (own + 8 * r < p.queries)
      store_row<T>(static_cast<uint16*>(g.q_ct) + (block.head * p.queries + own + 8 * r) * p.depth,
                   p.depth, sum, r, p.scale);
}

/// A tile of keys of one key head.
struct Keys {
  int64 head;
  int first, start, plain;  // start: the first queries that see one; plain: that see all of them
};
TN_INLINE inline Keys keys_of_block(const Attention& p) {
  int64 of_head = (p.keys + kOwn - 1) / kOwn, head = block() / of_head;
  int first = static_cast<int>((block() - head * of_head) * kOwn);
  int less = p.causal ? static_cast<int>(p.queries - p.keys) : -first - kOwn;
  int sees_first = first + less, sees_last = first + kOwn - 1 + less;
  return {head, first, sees_first <= 0 ? 0 : sees_first / kStep * kStep,
          sees_last <= 0 ? 0 : sees_last};
}

template <int D>
TN_INLINE inline void bring_queries(const AttentionGradient& g, Room<D>& room) {
  const Attention& p = g.a;
  Keys own = keys_of_block(p);
  bring<D, kOwn>(operand(p.k, own.head, p.keys, p.depth), own.first, room.own[0]);
  bring<D, kOwn>(operand(p.v, own.head, p.keys, p.out_depth), own.first, room.own[1]);
  arrive_after_copies(room.own_full);
  int queries = static_cast<int>(p.queries), self = thread() % kBringers, column = self % kStep;
  Place at;
  TN_UNROLL_BY(1)
  for (int i = 0; i < g.shared; ++i) {
    int64 head = own.head * g.shared + i;
    Operand q = operand(p.q, head, p.queries, p.depth);
    Operand ct = operand(g.ct, head, p.queries, p.out_depth);
    const float* numbers = (self < kStep ? g.levels : g.deltas) + head * p.queries;
    TN_UNROLL_BY(1)
    for (int first = own.start; first < queries; first += kStep, at.next()) {
      wait(room.free[at.at], at.round ^ 1);
      bring<D, kStep>(q, first, room.tiles[at.at][0]);
      bring<D, kStep>(ct, first, room.tiles[at.at][1]);
      float* to = (self < kStep ? room.levels : room.deltas)[at.at] + column;
      bool wanted = first + column < queries;
      copy_number_near(to, wanted ? numbers + first + column : numbers, wanted);
      arrive_after_copies(room.full[at.at]);
    }
  }
}

/// Scores lie turned: a thread has two keys, and columns are queries.
template <class T, int D>
TN_INLINE inline void key_cotangents(const AttentionGradient& g, Room<D>& room, int group) {
  const Attention& p = g.a;
  Keys block = keys_of_block(p);
  User<T, D> user{room, group};
  int own = block.first + group * 64 + warp() % 4 * 16 + lane() / 4;
  int queries = static_cast<int>(p.queries), more = static_cast<int>(p.keys) - queries;
  float k_sum[D / 2] = {}, v_sum[D / 2] = {}, scale = p.scale * kLog2E;
  wait(room.own_full, 0);
  TN_UNROLL_BY(1)
  for (int i = 0; i < g.shared; ++i) {
    TN_UNROLL_BY(1)
    for (int first = block.start; first < queries; first += kStep) {
      float s[kStep / 2], t[kStep / 2];
      uint32 weights[kStep / 16][4], slopes[kStep / 16][4];
      user.begin();
      user.score(s, 0);
      user.score(t, 1);
      wait_products<1>(s);
      if (first < block.plain) {
        TN_UNROLL
        for (int j = 0; j < kStep / 2; ++j)
          if (own + j / 2 % 2 * 8 > first + column_of(j) + more) s[j] = kNever;
      }
      const float *levels = room.levels[user.at.at], *deltas = room.deltas[user.at.at];
      TN_UNROLL
      for (int j = 0; j < kStep / 2; ++j)
        s[j] = exp2_of(__builtin_fmaf(s[j], scale, -levels[column_of(j)]));
      user.narrow(s, weights);
      user.add(v_sum, weights, 1);
      wait_products<1>(t);
      TN_UNROLL
      for (int j = 0; j < kStep / 2; ++j) s[j] *= t[j] - deltas[column_of(j)];
      user.narrow(s, slopes);
      user.add(k_sum, slopes, 0);
      wait_products<1>(v_sum);
      wait_products<0>(k_sum);
      user.leave();
    }
  }
  TN_UNROLL
  for (int r = 0; r < 2; ++r) {
    int64 key = block.head * p.keys + own + 8 * r;
    if (own + 8 * r >= p.keys) continue;
    store_row<T>(static_cast<uint16*>(g.k_ct) + key * p.depth, p.depth, k_sum, r, p.scale);
    store_row<T>(static_cast<uint16*>(g.v_ct) + key * p.out_depth, p.out_depth, v_sum, r, 1);
  }
}

}  // namespace hopper_gradient

#define GRADIENT_KERNEL(part, others, one, name, T, D)                              \
  TN_KERNEL(attention_hopper_##part##_##name##_##D, AttentionGradient) {            \
    auto& room = hopper_gradient::prepared_room<D>();                               \
    int group = uniform(thread() / 128);                                            \
    if (group == 0) {                                                               \
      give_registers<40>();                                                         \
      hopper_gradient::bring_##others<D>(p, room);                                  \
    } else {                                                                        \
      take_registers<232>();                                                        \
      hopper_gradient::one##_cotangents<T, D>(p, room, group - 1);                  \
    }                                                                               \
  }
#define GRADIENT_KERNELS(name, T, D)                      \
  GRADIENT_KERNEL(queries, keys, query, name, T, D)       \
  GRADIENT_KERNEL(keys, queries, key, name, T, D)
GRADIENT_KERNELS(f16, F16, 64)
GRADIENT_KERNELS(f16, F16, 128)
GRADIENT_KERNELS(bf16, BF16, 64)
GRADIENT_KERNELS(bf16, BF16, 128)
#undef GRADIENT_KERNELS
#undef GRADIENT_KERNEL
