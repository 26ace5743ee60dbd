// Attention of f16 and bf16 for GPUs of compute capability 9.0, whose tensor cores read shared memory
// themselves: one warp group brings tiles, two have 64 queries each. While the products of one tile
// are computed, each makes weights of the scores of another. The build compiles this to PTX
// (cmake/prebuilt.cmake).
#include "backend/cuda/prebuilt/attention_parts.h"
#include "backend/cuda/prebuilt/gpu_warp_groups.h"

namespace hopper {

constexpr int kSide = 128;            // queries and keys of a tile
constexpr int kPanel = kSide * 128;   // bytes of 64 columns of a tile
constexpr int kThreads = 384, kBringers = 128, kUserWarps = 8;

template <int D>
struct Room {
  static constexpr int kStages = D == 64 ? 4 : 3;
  static constexpr int kTile = D / 64 * kPanel;
  char q[kTile], k[kStages][kTile], v[kStages][kTile];
  Barrier q_full, q_free, k_full[kStages], k_free[kStages], v_full[kStages], v_free[kStages];
};

/// One after the other of `Stages` places, and how often it was gone through.
template <int Stages>
struct Place {
  int at = 0, round = 0;
  TN_INLINE void next() {
    if (++at == Stages) at = 0, round ^= 1;
  }
};

/// A tile of queries of one head. Blocks take those of some heads at a time, the longest first, and
/// every other time in the opposite order, so that all have as much to do.
struct Item {
  int64 head, query0;
  int seen, tiles, plain;  // keys; tiles of keys; the first tiles, of which all queries see all
};
/// In 32 bits, which the launcher makes sure of: longer divisions take as long as a part of a tile.
TN_INLINE inline bool find_item(const Attention& p, uint32 blocks, uint32 step, Item& item) {
  auto of_head = static_cast<uint32>((p.queries + kSide - 1) / kSide);
  auto all_heads = static_cast<uint32>(p.heads), near = static_cast<uint32>(p.near_heads);
  auto own = static_cast<uint32>(block());
  uint32 number = step * blocks + (step % 2 ? blocks - 1 - own : own);
  if (number >= of_head * all_heads) return false;
  uint32 group = number / (of_head * near), heads = all_heads - group * near;
  if (heads > near) heads = near;
  uint32 inside = number - group * of_head * near, turn = inside / heads;
  item.head = group * near + (inside - turn * heads);
  item.query0 = int64{of_head - 1 - turn} * kSide;
  int64 last = item.query0 + kSide;
  item.seen = limit_of(p, (last < p.queries ? last : p.queries) - 1);
  item.tiles = (item.seen + kSide - 1) / kSide;
  item.plain = limit_of(p, item.query0) / kSide;
  return true;
}

/// Rows from `first` on as a tile; zeros beyond the last one and beyond the depth.
template <int D>
TN_INLINE inline void bring(const uint16* from, int64 row, int64 first, int64 count, int depth,
                            char* tile) {
  constexpr int kPieces = D / 8, kRows = kBringers / kPieces;
  int self = thread() % kBringers, piece = self % kPieces, r = self / kPieces;
  bool is_inside = piece * 8 < depth;
  char* to = tile + piece / 8 * kPanel + r * 128 + (piece % 8 ^ r % 8) * 16;
  const uint16* x = from + (first + r) * row + piece * 8;
  if (first + kSide <= count && depth == D) {  // most tiles: a quarter of the instructions
    int64 step = row * kRows;
    TN_UNROLL_BY(8)
    for (int i = 0; i < kSide / kRows; ++i, x += step) copy_near(to + i * kRows * 128, x);
    return;
  }
  TN_UNROLL_BY(2)
  for (int i = 0; i < kSide / kRows; ++i) {
    bool wanted = is_inside && first + r + i * kRows < count;
    copy_near(to + i * kRows * 128, wanted ? x + i * kRows * row : from, wanted);
  }
}

/// Copies of a tile that are under way. Threads that copy show products what they have copied, so
/// that those that multiply need no fence. A tile is announced when the next one has been begun, or
/// when there is no place for one yet.
struct Brought {
  Barrier* full = nullptr;

  TN_INLINE void begin(Barrier& free, int parity) {
    if (is_open(free, parity)) return;
    announce<0>();
    wait(free, parity);
  }
  TN_INLINE void end(Barrier& its) {
    close_copies();
    announce<1>();
    full = &its;
  }
  template <int Left>
  TN_INLINE void announce() {
    if (!full) return;
    wait_copies<Left>();
    show_to_products();
    arrive(*full);
    full = nullptr;
  }
};

template <int D>
TN_INLINE inline void bring_all(const Attention& p, Room<D>& room, uint32 blocks) {
  constexpr int kStages = Room<D>::kStages;
  Place<kStages> k_at, v_at;
  Item item;
  Brought brought;
  int q_round = 0;
  for (uint32 step = 0; find_item(p, blocks, step, item); ++step) {
    HeadPlaces at = places_of(p, item.head);
    auto* k = static_cast<const uint16*>(p.k) + at.k;
    auto* v = static_cast<const uint16*>(p.v) + at.v;
    int depth = static_cast<int>(p.depth), out_depth = static_cast<int>(p.out_depth);
    if (item.tiles == 0) continue;
    brought.begin(room.q_free, q_round ^ 1), q_round ^= 1;
    bring<D>(static_cast<const uint16*>(p.q) + at.q, p.q_row, item.query0, p.queries, depth, room.q);
    brought.end(room.q_full);
    for (int tile = item.tiles - 1; tile >= -1; --tile) {
      if (tile >= 0) {
        brought.begin(room.k_free[k_at.at], k_at.round ^ 1);
        bring<D>(k, p.k_row, int64{tile} * kSide, p.keys, depth, room.k[k_at.at]);
        brought.end(room.k_full[k_at.at]);
        k_at.next();
      }
      if (tile + 1 < item.tiles) {
        brought.begin(room.v_free[v_at.at], v_at.round ^ 1);
        bring<D>(v, p.v_row, int64{tile + 1} * kSide, p.keys, out_depth, room.v[v_at.at]);
        brought.end(room.v_full[v_at.at]);
        v_at.next();
      }
    }
  }
  brought.announce<0>();
}

/// A warp group with 64 queries.
template <class T, int D>
struct User {
  const Attention& p;
  Room<D>& room;
  int group;  // 0 or 1
  float scale;
  Place<Room<D>::kStages> k_at = {}, v_at = {};

  TN_INLINE void score(float (&s)[64]) {
    Matrix q = matrix_at(room.q + group * (kPanel / 2), 16, 1024);
    Matrix k = matrix_at(room.k[k_at.at], 16, 1024);
    TN_UNROLL
    for (int i = 0; i < D / 16; ++i) {
      int at = i / 4 * kPanel + i % 4 * 32;
      multiply_rows<T>(s, moved(q, at), moved(k, at), i > 0);
    }
  }
  TN_INLINE void mix(float (&o)[D / 2], const uint32 (&weights)[kSide / 16][4]) {
    Matrix v = matrix_at(room.v[v_at.at], kPanel, 1024);
    TN_UNROLL
    for (int i = 0; i < kSide / 16; ++i)
      multiply_columns<T>(o, weights[i], moved(v, i * 16 * 128));
  }
  TN_INLINE void narrow(const float (&s)[64], uint32 (&weights)[kSide / 16][4]) {
    TN_UNROLL
    for (int i = 0; i < kSide / 4; ++i) weights[i / 4][i % 4] = packed<T>(s[i * 2], s[i * 2 + 1]);
  }
  /// A place was read by all of the warp.
  TN_INLINE void leave(Barrier& free) {
    meet_warp();
    if (lane() == 0) arrive(free);
  }

  /// Waits for what the next product reads: keys, or values where `tile` is the last one.
  ///
  /// ptxas moves a wait for products to the beginning of its basic block, past all that does not
  /// read their sums: weights would be made when the product beside them is over. This loop ends the
  /// block, and needs the totals of all weights, none of which is negative.
  TN_INLINE void wait_for_next(int tile, const RowPair& rows) {
    int never = rows.total[0] + rows.total[1] < 0;
    auto v_next = v_at;
    v_next.next();
    bool has_keys = tile > 0;
    wait(has_keys ? room.k_full[k_at.at] : room.v_full[v_next.at],
         (has_keys ? k_at.round : v_next.round) ^ never);
  }

  /// The scores of one tile, beside the product of the weights of the last one.
  template <bool Hides>
  TN_INLINE void step(int tile, const int (&limit)[2], float (&o)[D / 2], RowPair& rows,
                      uint32 (&weights)[kSide / 16][4]) {
    float s[64], shrink[2];
    meet_number(1 + group);
    begin_products();
    score(s);
    close_products();
    wait(room.v_full[v_at.at], v_at.round);
    begin_products();
    mix(o, weights);
    close_products();
    arrive_number(2 - group);
    wait_products<1>(s);
    leave(room.k_free[k_at.at]), k_at.next();
    if (tile == 0) leave(room.q_free);
    if constexpr (Hides) hide(s, tile * kSide, limit);
    weigh(s, rows, scale, shrink);
    wait_for_next(tile, rows);
    wait_products<0>(o);
    leave(room.v_free[v_at.at]), v_at.next();
    TN_UNROLL
    for (int i = 0; i < D / 2; ++i) o[i] *= shrink[i / 2 % 2];
    narrow(s, weights);
  }

  TN_INLINE void attend(const Item& item, int round) {
    int64 own = item.query0 + group * 64 + warp() % 4 * 16 + lane() / 4;
    int limit[2] = {own < p.queries ? limit_of(p, own) : 0,
                    own + 8 < p.queries ? limit_of(p, own + 8) : 0};
    float o[D / 2] = {};
    RowPair rows;
    if (item.tiles > 0) {
      uint32 weights[kSide / 16][4];
      {
        float s[64], shrink[2];
        wait(room.q_full, round);
        wait(room.k_full[k_at.at], k_at.round);
        begin_products();
        score(s);
        close_products();
        wait_products<0>(s);
        leave(room.k_free[k_at.at]), k_at.next();
        if (item.tiles == 1) leave(room.q_free);
        hide(s, (item.tiles - 1) * kSide, limit);
        weigh(s, rows, scale, shrink);
        narrow(s, weights);
        if (item.tiles > 1) wait(room.k_full[k_at.at], k_at.round);
      }
      int tile = item.tiles - 2;
      for (; tile >= item.plain; --tile) step<true>(tile, limit, o, rows, weights);
      for (; tile >= 0; --tile) step<false>(tile, limit, o, rows, weights);
      wait(room.v_full[v_at.at], v_at.round);
      begin_products();
      mix(o, weights);
      close_products();
      wait_products<0>(o);
      leave(room.v_free[v_at.at]), v_at.next();
    }
    store_vectors<T>(p, item.head, own, o, rows);
  }
};

template <class T, int D>
TN_INLINE inline void attend(const Attention& p) {
  auto start = reinterpret_cast<uint64>(&shared<char>());
  auto& room = *reinterpret_cast<Room<D>*>((start + 1023) / 1024 * 1024);
  if (thread() == 0) {
    prepare(room.q_full, kBringers), prepare(room.q_free, kUserWarps);
    for (int i = 0; i < Room<D>::kStages; ++i) {
      prepare(room.k_full[i], kBringers), prepare(room.k_free[i], kUserWarps);
      prepare(room.v_full[i], kBringers), prepare(room.v_free[i], kUserWarps);
    }
  }
  meet_all(kThreads);
  auto blocks = static_cast<uint32>(p.blocks);
  int group = uniform(thread() / 128);
  if (group == 0) {
    give_registers<40>();
    bring_all<D>(p, room, blocks);
  } else {
    take_registers<232>();
    User<T, D> user{p, room, group - 1, p.scale * kLog2E};
    if (group == 2) arrive_number(1);
    Item item;
    int round = 0;
    for (uint32 step = 0; find_item(p, blocks, step, item); ++step) {
      user.attend(item, round);
      if (item.tiles > 0) round ^= 1;
    }
    if (group == 1) meet_number(1);  // the arrival that is left
  }
}

}  // namespace hopper

#define HOPPER_KERNEL(name, T, D) \
  TN_KERNEL(attention_hopper_##name##_##D, Attention) { hopper::attend<T, D>(p); }
HOPPER_KERNEL(f16, F16, 64)
HOPPER_KERNEL(f16, F16, 128)
HOPPER_KERNEL(bf16, BF16, 64)
HOPPER_KERNEL(bf16, BF16, 128)
