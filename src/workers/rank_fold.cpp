// Chooses the kernels of this machine's CPU level.
#include "workers/rank_fold.h"

#include <algorithm>
#include <cstring>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "backend/cpu/cpu_level.h"
#include "workers/rank_fold_kernels.h"

namespace tn::workers {

void fold(Fold kind, Element type, std::span<const void* const> in, void* out, int64_t count) {
  at_level(v2::fold_level, v3::fold_level, v4::fold_level)
      .fold(kind, type, in, {&out, 1}, count, false);
}

void fold_to_all(Fold kind, Element type, std::span<const void* const> in,
                 std::span<void* const> out, int64_t count, int64_t all) {
  // A store over what was just loaded finds its line in the cache.
  bool in_place = std::ranges::equal(in, out, [](const void* a, void* b) { return a == b; });
  bool streams = all >= kStreamBytes && !in_place;
  at_level(v2::fold_level, v3::fold_level, v4::fold_level)
      .fold(kind, type, in, out, count, streams);
  if (streams) end_streaming();
}

void stream_copy(void* to, const void* from, size_t bytes) {
#if defined(__x86_64__)
  auto* target = static_cast<char*>(to);
  auto* source = static_cast<const char*>(from);
  size_t head = std::min(bytes, -reinterpret_cast<uintptr_t>(target) % sizeof(__m128i));
  std::memcpy(target, source, head);
  size_t at = head;
  for (; at + sizeof(__m128i) <= bytes; at += sizeof(__m128i))
    _mm_stream_si128(reinterpret_cast<__m128i*>(target + at),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + at)));
  std::memcpy(target + at, source + at, bytes - at);
#else
  std::memcpy(to, from, bytes);
#endif
}

void end_streaming() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

}  // namespace tn::workers
