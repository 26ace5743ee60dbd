#include "backend/cpu/kernels/strided_copy.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "runtime/threads.h"
#include "runtime/with_bits.h"

namespace tn {
namespace {

constexpr int64_t kCopied = 1 << 14;  // elements worth a chunk
constexpr int64_t kSquare = 16;

struct CopyAxis {
  int64_t extent, from, to;  // strides
};

/// Axes of extent above 1, neighbours as one where both sides allow it.
std::vector<CopyAxis> merged_axes(std::span<const int64_t> extents,
                                  std::span<const int64_t> strides) {
  std::vector<CopyAxis> axes;
  int64_t to = 1;
  for (size_t k = extents.size(); k-- > 0;) {
    if (extents[k] == 1) continue;
    if (!axes.empty() && strides[k] == axes.back().from * axes.back().extent)
      axes.back().extent *= extents[k];
    else
      axes.push_back({extents[k], strides[k], to});
    to *= extents[k];
  }
  while (axes.size() < 2) axes.push_back({1, 0, 0});
  return axes;
}

/// Square by square, so that the lines which are read and those which are written stay in L1.
template <class T>
void copy_plane(const CopyAxis& fast, const CopyAxis& slow, const T* from, T* to) {
  for (int64_t s0 = 0; s0 < slow.extent; s0 += kSquare)
    for (int64_t f0 = 0; f0 < fast.extent; f0 += kSquare) {
      int64_t s1 = std::min(s0 + kSquare, slow.extent), f1 = std::min(f0 + kSquare, fast.extent);
      for (int64_t s = s0; s < s1; ++s)
        for (int64_t f = f0; f < f1; ++f)
          to[f * fast.to + s * slow.to] = from[f * fast.from + s * slow.from];
    }
}

template <class T>
void copy_all(std::vector<CopyAxis> axes, const T* from, T* to) {
  // The plane of squares: what is fastest in `to`, and what is fastest in `from` besides.
  auto nearer = [](const CopyAxis& a, const CopyAxis& b) {
    return std::abs(a.from) < std::abs(b.from);
  };
  std::iter_swap(axes.begin() + 1, std::min_element(axes.begin() + 1, axes.end(), nearer));
  CopyAxis fast = axes[0], slow = axes[1];
  int64_t planes = 1;
  for (size_t k = 2; k < axes.size(); ++k) planes *= axes[k].extent;
  // A plane may be large and alone, so it is cut as well.
  int64_t size = fast.extent * slow.extent;
  int64_t cuts = std::clamp<int64_t>(size / kCopied, 1, slow.extent);
  int64_t chunks = std::min(planes * cuts, chunks_for(planes * size, kCopied));
  parallel_for(chunks, [&](int64_t chunk) {
    auto [begin, end] = chunk_range(planes * cuts, chunks, chunk);
    for (int64_t i = begin; i < end; ++i) {
      auto part = chunk_range(slow.extent, cuts, i % cuts);
      int64_t rest = i / cuts, source = part.begin * slow.from, target = part.begin * slow.to;
      for (size_t k = 2; k < axes.size(); ++k) {
        int64_t at = rest % axes[k].extent;
        rest /= axes[k].extent;
        source += at * axes[k].from, target += at * axes[k].to;
      }
      copy_plane(fast, {part.end - part.begin, slow.from, slow.to}, from + source, to + target);
    }
  });
}

}  // namespace

void copy_strided(int64_t element_bytes, std::span<const int64_t> extents,
                  std::span<const int64_t> strides, const void* from, void* to) {
  with_bits(element_bytes, [&]<class T>(T) {
    copy_all(merged_axes(extents, strides), static_cast<const T*>(from), static_cast<T*>(to));
  });
}

}  // namespace tn
