#include "backend/cpu/kernels/sort.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/kernels/radix_sort.h"

namespace tn {
namespace {

constexpr int64_t kManyRows = 16;

/// Calls `row(i)` for every row: one after the other where few rows are worth all threads each
/// (and `row` uses them), else side by side.
template <class F>
void each_row(int64_t rows, int64_t n, bool row_is_threaded, F row) {
  bool one_by_one = row_is_threaded && n >= kLongRow && rows < kManyRows;
  int64_t chunks = one_by_one ? 1 : std::min(rows, chunks_for(rows * n, 1 << 12));
  parallel_for(chunks, [&](int64_t chunk) {
    auto [begin, end] = chunk_range(rows, chunks, chunk);
    for (int64_t i = begin; i < end; ++i) row(i);
  });
}

/// Writes the elements of `from` that satisfy `wanted` to `to`, in order.
template <class T, class F>
void copy_in_order(const T* from, int64_t n, T* to, F wanted) {
  for (int64_t i = 0; i < n; ++i)
    if (wanted(from[i])) *to++ = from[i];
}

/// Sorts numbers by a key that is their value, so that no positions travel along. What such a key
/// cannot keep in order, zeros of both signs and NaN, is copied again from the input.
template <class T>
void sort_values(const T* from, int64_t n, T* to, bool descending) {
  using Key = KeyOf<T>;
  BufferRef memory = allocate(2 * sizeof(Key) * static_cast<size_t>(n));
  Key* keys = memory.data<Key>();
  int64_t count = 0;
  Key flip = descending ? kNanKey<Key> : Key{0};
  for (int64_t i = 0; i < n; ++i) {
    keys[count] = static_cast<Key>(exact_key(from[i]) ^ flip);
    count += !is_nan(from[i]);
  }
  sort_keys(keys, keys + n, count, {0, 8 * static_cast<int>(sizeof(Key))});
  for (int64_t i = 0; i < count; ++i) to[i] = from_exact_key<T>(static_cast<Key>(keys[i] ^ flip));
  if constexpr (kIsReal<T>) {
    if (count < n) copy_in_order(from, n, to + count, [](T x) { return is_nan(x); });
    Key minus = static_cast<Key>((kSignBit<T> - 1) ^ flip),
        plus = static_cast<Key>(kSignBit<T> ^ flip);
    Key* zeros = std::lower_bound(keys, keys + count, std::min(minus, plus));
    Key* end = std::upper_bound(zeros, keys + count, std::max(minus, plus));
    if (zeros != end && *zeros != end[-1])
      copy_in_order(from, n, to + (zeros - keys), [](T x) { return order_key(x) == kSignBit<T>; });
  }
}

template <class T>
void sort_row(const T* from, int64_t n, T* to, bool descending) {
  if constexpr (kIsComplex<T>) {
    IndexedKeys<T> keys(n);
    keys.sort(from, n, descending);
    for (int64_t i = 0; i < n; ++i) to[i] = from[keys.index(i)];
  } else {
    sort_values(from, n, to, descending);
  }
}

/// The k smallest of `keys` to its front, in order.
template <class Packed>
void select(Packed* keys, Packed* other, int64_t n, int64_t k, KeyBits bits) {
  if (k > n / 8) return sort_keys(keys, other, n, bits);
  std::partial_sort(keys, keys + k, keys + n);
}

template <class T>
void top_k_row(const T* from, int64_t n, int64_t k, T* values, int64_t* indices) {
  using Form = Indexed<KeyOf<T>>;
  IndexedKeys<T> keys(n);
  for (int64_t i = 0; i < n; ++i) keys.keys()[i] = Form::pack(order_key(from[i], true), i);
  select(keys.keys(), keys.keys() + n, n, k, Form::kBits);
  for (int64_t i = 0; i < k; ++i) {
    if (values) values[i] = from[keys.index(i)];
    if (indices) indices[i] = keys.index(i);
  }
}

}  // namespace

void sort(Element type, int64_t rows, int64_t n, const void* from, void* to, bool descending) {
  if (n == 0) return;
  with_element(type, [&]<class T>(T) {
    each_row(rows, n, true, [&](int64_t row) {
      sort_row(static_cast<const T*>(from) + row * n, n, static_cast<T*>(to) + row * n, descending);
    });
  });
}

void argsort(Element type, int64_t rows, int64_t n, const void* from, int64_t* to,
             bool descending) {
  if (n == 0) return;
  with_element(type, [&]<class T>(T) {
    each_row(rows, n, true, [&](int64_t row) {
      IndexedKeys<T> keys(n);
      keys.sort(static_cast<const T*>(from) + row * n, n, descending);
      for (int64_t i = 0; i < n; ++i) to[row * n + i] = keys.index(i);
    });
  });
}

void top_k(Element type, int64_t rows, int64_t n, int64_t k, const void* from, void* values,
           int64_t* indices) {
  if (k == 0) return;
  with_element(type, [&]<class T>(T) {
    each_row(rows, n, false, [&](int64_t row) {
      top_k_row(static_cast<const T*>(from) + row * n, n, k,
                values ? static_cast<T*>(values) + row * k : nullptr,
                indices ? indices + row * k : nullptr);
    });
  });
}

}  // namespace tn
