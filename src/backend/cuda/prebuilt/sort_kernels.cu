// Sorts for GPUs. A sort is of pairs, a key and the place of the element: tiles are
// sorted in shared memory, then runs are merged two by two. Equal keys keep their order, so results
// are those of any stable sort: the CPU's. The build compiles this to PTX (cmake/prebuilt.cmake).
#include "backend/cuda/prebuilt/pairs.h"

constexpr int kTile = 2048;  // pairs that a block sorts, or makes of two runs
constexpr int kEach = kTile / kThreads;

/// As in cuda_sorts.cpp.
struct Sort {
  const void* x;
  void* values;    // the elements in order; null: not wanted
  int64* places;   // where they were; null: not wanted
  void* pairs[2];  // null: rows fit into tiles, and pairs are not wanted
  int64 rows, n, inner;  // element i of row r lies at (r / inner * n + i) * inner + r % inner
  int64 keep;            // of each row, the first ones
  int64 run;             // the length of sorted runs
  uint64 infinity;       // bits of it; those above are NaN
  int bytes, kind;       // kind: 0 unsigned, 1 signed, 2 floating
  int descending;
  int padded;   // log2 of the places of a row in a tile
  int is_last;  // the merge that makes results
};

inline void copy_bits(const void* from, int64 i, void* to, int64 k, int bytes) {
  if (bytes == 4)
    static_cast<uint32*>(to)[k] = static_cast<const uint32*>(from)[i];
  else if (bytes == 8)
    static_cast<uint64*>(to)[k] = static_cast<const uint64*>(from)[i];
  else if (bytes == 2)
    static_cast<uint16*>(to)[k] = static_cast<const uint16*>(from)[i];
  else
    static_cast<uint8*>(to)[k] = static_cast<const uint8*>(from)[i];
}

/// Equal elements have equal keys: -0 is 0, and NaN is above all, in either direction.
template <class Key>
inline Key key_of(const Sort& p, uint64 bits) {
  uint64 sign = 1ull << (8 * p.bytes - 1), all = sign | (sign - 1);
  if (p.kind == 2) {
    if ((bits & (sign - 1)) > p.infinity) return static_cast<Key>(~Key(0));
    if (bits == sign) bits = 0;
    bits = bits & sign ? ~bits & all : bits | sign;
  } else if (p.kind == 1) {
    bits ^= sign;
  }
  return static_cast<Key>(p.descending ? ~bits & all : bits);
}

inline int64 place_of(int64 row, int64 i, int64 n, int64 inner) {
  if (inner == 1) return row * n + i;
  int64 outer = row / inner;
  return (outer * n + i) * inner + (row - outer * inner);
}

/// Element number `i` of a row, in order.
template <class Key>
inline void write_result(const Sort& p, int64 row, int64 i, const Pair<Key>& pair) {
  int64 to = place_of(row, i, p.keep, p.inner);
  if (p.values)
    copy_bits(p.x, place_of(row, static_cast<int64>(pair.place), p.n, p.inner), p.values, to,
              p.bytes);
  if (p.places) p.places[to] = static_cast<int64>(pair.place);
}

template <class Key>
inline bool is_before(const Pair<Key>& a, const Pair<Key>& b) {
  return a.key < b.key || (a.key == b.key && a.place < b.place);
}

template <class Key>
inline void put_in_order(Pair<Key>& a, Pair<Key>& b) {
  Pair<Key> first = a, second = b;
  if (is_before(second, first)) a = second, b = first;
}

/// A network: in each round, places 2^k apart. All comparisons put the smaller first, so what fills
/// a tile up stays at its end.
template <class Key>
inline void sort_tile(const Sort& p, Pair<Key>* room) {
  int log = p.padded;
  int64 tiles = (p.n + (1ll << log) - 1) >> log, first = block() * (kTile >> log);
  for (int l = thread(); l < kTile; l += kThreads) {
    int64 piece = first + (l >> log), row = tiles == 1 ? piece : piece / tiles;
    int64 i = ((piece - row * tiles) << log) + (l & ((1 << log) - 1));
    Pair<Key> pair{static_cast<Key>(~Key(0)), static_cast<Key>(~Key(0))};
    if (row < p.rows && i < p.n)
      pair = {key_of<Key>(p, load_bits(p.x, place_of(row, i, p.n, p.inner), p.bytes)),
              static_cast<Key>(i)};
    room[l] = pair;
  }
  meet();
  for (int size = 1; size <= log; ++size) {  // runs of 2^size
    for (int l = thread(); l < kTile / 2; l += kThreads) {
      int half = 1 << (size - 1), i = l & (half - 1), begin = (l >> (size - 1)) << size;
      put_in_order(room[begin + i], room[begin + 2 * half - 1 - i]);
    }
    meet();
    for (int apart = size - 2; apart >= 0; --apart) {
      for (int l = thread(); l < kTile / 2; l += kThreads) {
        int at = ((l >> apart) << (apart + 1)) + (l & ((1 << apart) - 1));
        put_in_order(room[at], room[at + (1 << apart)]);
      }
      meet();
    }
  }
  for (int l = thread(); l < kTile; l += kThreads) {
    int64 piece = first + (l >> log), row = tiles == 1 ? piece : piece / tiles;
    int64 begin = (piece - row * tiles) << log;
    int i = l & ((1 << log) - 1);
    if (row >= p.rows || begin + i >= p.n || i >= p.keep) continue;
    if (p.pairs[0])
      static_cast<Pair<Key>*>(p.pairs[0])[row * p.n + begin + i] = room[l];
    else
      write_result(p, row, i, room[l]);
  }
}

/// How many of the first `count` elements of two runs, merged, are of the first.
template <class Key>
inline int64 split(const Pair<Key>* a, int64 of_a, const Pair<Key>* b, int64 of_b, int64 count) {
  int64 low = count > of_b ? count - of_b : 0, high = count < of_a ? count : of_a;
  while (low < high) {
    int64 middle = (low + high) / 2;
    if (b[count - 1 - middle].key < a[middle].key)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

template <class Key>
struct MergeRoom {
  int64 from[2];
  Pair<Key> pairs[kTile];
};

/// A tile of what two neighbouring runs become. Of each run the first `keep` are wanted.
template <class Key>
inline void merge_runs(const Sort& p, MergeRoom<Key>& room) {
  auto most = [&](int64 length) { return length < p.keep ? length : p.keep; };
  int64 twice = 2 * p.run, couples = (p.n + twice - 1) / twice;
  int64 tiles = (most(twice) + kTile - 1) / kTile;
  int64 row = block() / (couples * tiles), couple = block() / tiles - row * couples;
  int64 tile = block() - (row * couples + couple) * tiles;
  auto within = [&](int64 length) { return length < 0 ? 0 : length < p.run ? length : p.run; };
  int64 begin = couple * twice;
  int64 of_a = most(within(p.n - begin)), of_b = most(within(p.n - begin - p.run));
  int64 first = tile * kTile, last = most(of_a + of_b);
  if (first >= last) return;
  if (last > first + kTile) last = first + kTile;
  auto* a = static_cast<const Pair<Key>*>(p.pairs[0]) + row * p.n + begin;
  auto* b = a + p.run;
  if (thread() < 2) room.from[thread()] = split(a, of_a, b, of_b, thread() ? last : first);
  meet();
  int64 a0 = room.from[0], b0 = first - a0;
  int count_a = static_cast<int>(room.from[1] - a0), count = static_cast<int>(last - first);
  for (int l = thread(); l < count; l += kThreads)
    room.pairs[l] = l < count_a ? a[a0 + l] : b[b0 + l - count_a];
  meet();
  Key keys[kEach], places[kEach];
  int own = thread() * kEach, own_end = own + kEach < count ? own + kEach : count;
  if (own < count) {
    auto* local_b = room.pairs + count_a;
    int i = static_cast<int>(split(room.pairs, count_a, local_b, count - count_a, own));
    int k = own - i;
    TN_UNROLL
    for (int l = 0; l < kEach; ++l) {
      bool has_a = i < count_a, has_b = k < count - count_a;
      bool takes_a = has_a && (!has_b || !(local_b[k].key < room.pairs[i].key));
      int at = takes_a ? i : count_a + k;
      if (at >= kTile) at = kTile - 1;
      keys[l] = room.pairs[at].key, places[l] = room.pairs[at].place;
      i += takes_a, k += !takes_a;
    }
  }
  meet();
  TN_UNROLL
  for (int l = 0; l < kEach; ++l)
    if (own + l < own_end) room.pairs[own + l] = {keys[l], places[l]};
  meet();
  for (int l = thread(); l < count; l += kThreads) {
    if (p.is_last)
      write_result(p, row, first + l, room.pairs[l]);
    else
      static_cast<Pair<Key>*>(p.pairs[1])[row * p.n + begin + first + l] = room.pairs[l];
  }
}

TN_KERNEL(sort_tiles_32, Sort) { sort_tile(p, &shared<Pair<uint32>>()); }
TN_KERNEL(sort_tiles_64, Sort) { sort_tile(p, &shared<Pair<uint64>>()); }
TN_KERNEL(merge_runs_32, Sort) { merge_runs(p, shared<MergeRoom<uint32>>()); }
TN_KERNEL(merge_runs_64, Sort) { merge_runs(p, shared<MergeRoom<uint64>>()); }
