#include <algorithm>

#include "backend/cpu/kernels/radix_sort.h"
#include "plan/host_search.h"

namespace tn {
namespace {

constexpr int64_t kScanChunk = 1 << 16;

template <class T>
Unique unique_of(const T* from, int64_t n) {
  IndexedKeys<T> keys(n);
  if (n) keys.sort(from, n, false);
  bool has_nan = !std::is_integral_v<T>;
  auto begins = [&](int64_t i) {
    return i == 0 || keys.key(i) != keys.key(i - 1) ||
           (has_nan && keys.key(i) == kNanKey<KeyOf<T>>);
  };
  Unique result;
  for (int64_t i = 0; i < n; ++i) result.count += begins(i);
  size_t count = static_cast<size_t>(result.count);
  result.first = allocate(count * sizeof(int64_t));
  result.counts = allocate(count * sizeof(int64_t));
  result.inverse = allocate(static_cast<size_t>(n) * sizeof(int64_t));
  int64_t group = -1;
  for (int64_t i = 0; i < n; ++i) {
    int64_t index = keys.index(i);
    if (begins(i)) {
      ++group;
      result.first.data<int64_t>()[group] = index;
      result.counts.data<int64_t>()[group] = 0;
    }
    ++result.counts.data<int64_t>()[group];
    result.inverse.data<int64_t>()[index] = group;
  }
  return result;
}

template <class T>
bool is_nonzero(T value) {
  if constexpr (std::is_same_v<T, Float16Bits> || std::is_same_v<T, BFloat16Bits>)
    return value.bits & 0x7fff;
  else
    return value != T{};
}

/// How many elements of each chunk are not zero.
template <class T>
std::vector<int64_t> count_chunks(const T* from, int64_t n) {
  int64_t chunks = chunks_for(n, kScanChunk);
  std::vector<int64_t> counts(static_cast<size_t>(chunks));
  parallel_for(chunks, [&](int64_t chunk) {
    auto [begin, end] = chunk_range(n, chunks, chunk);
    int64_t count = 0;
    for (int64_t i = begin; i < end; ++i) count += is_nonzero(from[i]);
    counts[static_cast<size_t>(chunk)] = count;
  });
  return counts;
}

/// Writes the indices of flat position `flat`, one per axis.
void write_indices(int64_t flat, std::span<const int64_t> shape, const Nonzero& to, int64_t at) {
  for (size_t axis = shape.size(); axis-- > 0;) {
    int64_t outer = axis ? flat / shape[axis] : 0;
    to.axes[axis].data<int64_t>()[at] = flat - outer * shape[axis];
    flat = outer;
  }
}

template <class T>
Nonzero nonzero_of(const T* from, std::span<const int64_t> shape) {
  int64_t n = 1;
  for (int64_t extent : shape) n *= extent;
  std::vector<int64_t> counts = count_chunks(from, n);
  Nonzero result;
  for (int64_t& count : counts) result.count += std::exchange(count, result.count);
  for (size_t axis = 0; axis < shape.size(); ++axis)
    result.axes.push_back(allocate(static_cast<size_t>(result.count) * sizeof(int64_t)));
  int64_t chunks = static_cast<int64_t>(counts.size());
  parallel_for(chunks, [&](int64_t chunk) {
    auto [begin, end] = chunk_range(n, chunks, chunk);
    int64_t at = counts[static_cast<size_t>(chunk)];
    for (int64_t i = begin; i < end; ++i)
      if (is_nonzero(from[i])) write_indices(i, shape, result, at++);
  });
  return result;
}

}  // namespace

Unique unique(Element type, const void* from, int64_t n) {
  return with_element(type, [&]<class T>(T) { return unique_of(static_cast<const T*>(from), n); });
}

int64_t count_nonzero(Element type, const void* from, int64_t n) {
  return with_element(type, [&]<class T>(T) {
    int64_t sum = 0;
    for (int64_t count : count_chunks(static_cast<const T*>(from), n)) sum += count;
    return sum;
  });
}

Nonzero nonzero(Element type, const void* from, std::span<const int64_t> shape) {
  return with_element(type,
                      [&]<class T>(T) { return nonzero_of(static_cast<const T*>(from), shape); });
}

}  // namespace tn
