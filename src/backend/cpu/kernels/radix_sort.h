#pragma once
// Sorting of unsigned keys: by digits where there are many, by comparison where there are few, and
// in parts that are merged where there are very many.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "backend/cpu/kernels/sort_keys.h"
#include "base/error.h"
#include "runtime/buffer.h"
#include "runtime/threads.h"

namespace tn {

/// The bits [low, high) of a key that decide the order; lower bits are already in order, or the key
/// has none.
struct KeyBits {
  int low, high;
};

constexpr int64_t kFewKeys = 256;
constexpr int64_t kLongRow = 1 << 17;  // from here on one row is sorted by all threads

/// Sorts by digits of 8 bits, lowest first. The result is in the returned one of the two arrays.
template <class Key>
Key* radix_sort(Key* keys, Key* other, int64_t n, KeyBits bits) {
  constexpr int kMostDigits = 8;
  uint32_t counts[kMostDigits][256] = {};
  int digits = (bits.high - bits.low + 7) / 8;
  for (int64_t i = 0; i < n; ++i)
    for (int d = 0; d < digits; ++d)
      ++counts[d][static_cast<uint8_t>(keys[i] >> (bits.low + 8 * d))];
  for (int d = 0; d < digits; ++d) {
    uint32_t* count = counts[d];
    int shift = bits.low + 8 * d;
    if (count[static_cast<uint8_t>(keys[0] >> shift)] == n) continue;  // one digit for all
    uint32_t begin[256], sum = 0;
    for (int b = 0; b < 256; ++b) begin[b] = sum, sum += count[b];
    for (int64_t i = 0; i < n; ++i)
      other[begin[static_cast<uint8_t>(keys[i] >> shift)]++] = keys[i];
    std::swap(keys, other);
  }
  return keys;
}

/// Sorts `keys` in place; `other` is scratch of the same size.
template <class Key>
void sort_part(Key* keys, Key* other, int64_t n, KeyBits bits) {
  if constexpr (!std::is_class_v<Key>) {
    if (n > kFewKeys && n < int64_t{1} << 32) {
      Key* sorted = radix_sort(keys, other, n, bits);
      if (sorted != keys) std::memcpy(keys, sorted, sizeof(Key) * static_cast<size_t>(n));
      return;
    }
  }
  std::sort(keys, keys + n);
}

/// How many of the first `count` merged keys come from `a`.
template <class Key>
int64_t merge_split(const Key* a, int64_t na, const Key* b, int64_t nb, int64_t count) {
  int64_t low = std::max<int64_t>(0, count - nb), high = std::min(count, na);
  while (low < high) {
    int64_t middle = (low + high) / 2;
    if (b[count - middle - 1] < a[middle])
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

template <class Key>
void merge_range(const Key* a, int64_t na, const Key* b, int64_t nb, Key* out, ChunkRange range) {
  int64_t i = merge_split(a, na, b, nb, range.begin), i_end = merge_split(a, na, b, nb, range.end);
  int64_t j = range.begin - i, j_end = range.end - i_end;
  out += range.begin;
  while (i < i_end && j < j_end) {
    bool second = b[j] < a[i];
    *out++ = second ? b[j] : a[i];
    i += !second;
    j += second;
  }
  out = std::copy(a + i, a + i_end, out);
  std::copy(b + j, b + j_end, out);
}

/// Sorts one row of any length in place; a long one in parts whose number depends on n alone.
template <class Key>
void sort_keys(Key* keys, Key* other, int64_t n, KeyBits bits) {
  if (n < kLongRow) return sort_part(keys, other, n, bits);
  int64_t parts = n < 8 * kLongRow ? 4 : 8;
  // Rounded down, so that a boundary of half as many parts is one of these too.
  auto boundary = [n](int64_t of, int64_t part) { return n * part / of; };
  parallel_for(parts, [&](int64_t part) {
    int64_t begin = boundary(parts, part);
    sort_part(keys + begin, other + begin, boundary(parts, part + 1) - begin, bits);
  });
  Key* from = keys;
  Key* to = other;
  for (; parts > 1; parts /= 2, std::swap(from, to)) {
    int64_t pieces = 16 / parts;
    parallel_for(parts / 2 * pieces, [&](int64_t chunk) {
      int64_t pair = chunk / pieces * 2;
      int64_t begin = boundary(parts, pair), middle = boundary(parts, pair + 1);
      int64_t end = boundary(parts, pair + 2);
      merge_range(from + begin, middle - begin, from + middle, end - middle, to + begin,
                  chunk_range(end - begin, pieces, chunk % pieces));
    });
  }
  if (from != keys) std::memcpy(keys, from, sizeof(Key) * static_cast<size_t>(n));
}

/// The longest row whose positions fit below 32-bit keys.
constexpr int64_t kMostIndexed = (int64_t{1} << 32) - 1;

/// A key with its position below it, so that equal keys stay in order.
struct WideKey {
  Uint128 key;
  uint64_t index;
  friend bool operator<(const WideKey& a, const WideKey& b) {
    return a.key != b.key ? a.key < b.key : a.index < b.index;
  }
};

template <class Key>
struct Indexed {
  static constexpr int kIndexBits = sizeof(Key) <= 4 ? 64 - 8 * static_cast<int>(sizeof(Key)) : 64;
  using Packed = std::conditional_t<sizeof(Key) <= 4, uint64_t,
                                    std::conditional_t<sizeof(Key) == 8, Uint128, WideKey>>;
  static constexpr KeyBits kBits = {kIndexBits, kIndexBits + 8 * static_cast<int>(sizeof(Key))};

  static Packed pack(Key key, int64_t index) {
    if constexpr (sizeof(Key) == 16)
      return {key, static_cast<uint64_t>(index)};
    else
      return Packed{key} << kIndexBits | static_cast<uint64_t>(index);
  }
  static Key key(const Packed& packed) {
    if constexpr (sizeof(Key) == 16)
      return packed.key;
    else
      return static_cast<Key>(packed >> kIndexBits);
  }
  static int64_t index(const Packed& packed) {
    if constexpr (sizeof(Key) == 16)
      return static_cast<int64_t>(packed.index);
    else
      return static_cast<int64_t>(packed & (~Packed{0} >> (8 * sizeof(Packed) - kIndexBits)));
  }
};

/// The elements' keys with their positions, sorted stably.
template <class T>
class IndexedKeys {
 public:
  using Form = Indexed<KeyOf<T>>;
  using Packed = typename Form::Packed;

  explicit IndexedKeys(int64_t n) {
    if (sizeof(T) == 4 && n > kMostIndexed)
      unsupported({"sort parts of it"}, "sort: a row is too long: {} elements", n);
    memory_ = allocate(2 * sizeof(Packed) * static_cast<size_t>(n));
  }
  Packed* keys() const { return memory_.data<Packed>(); }

  void sort(const T* from, int64_t n, bool descending) {
    int64_t chunks = n < kLongRow ? 1 : 16;
    parallel_for(chunks, [&](int64_t chunk) {
      auto [begin, end] = chunk_range(n, chunks, chunk);
      for (int64_t i = begin; i < end; ++i)
        keys()[i] = Form::pack(order_key(from[i], descending), i);
    });
    sort_keys(keys(), keys() + n, n, Form::kBits);
  }
  int64_t index(int64_t i) const { return Form::index(keys()[i]); }
  KeyOf<T> key(int64_t i) const { return Form::key(keys()[i]); }

 private:
  BufferRef memory_;
};

}  // namespace tn
