#pragma once
// Drivers that apply a math function to contiguous blocks, in loops the compiler vectorises.
//
//   block([](auto x) { return exp(x); }, in, out, n);   block(Sin{}, in, out, n);
// `out` may be `in`. A function with a rare path gets a vector pass and a scalar repair of few
// lanes; the bits are those of calling it element by element.

#include "loop/math.h"

namespace tn::TN_LEVEL::math {

template <class F, class T>
concept HasRarePath = requires(T x) {
  F::common(x);
  F::is_rare(x);
};

template <class F, class T>
inline void block_with_rare_path(const T* in, T* out, int64_t n) {
  constexpr int64_t kChunk = 128;
  T result[kChunk];
  for (int64_t start = 0; start < n; start += kChunk) {
    const int64_t count = n - start < kChunk ? n - start : kChunk;
    const T* x = in + start;
    for (int64_t i = 0; i < count; ++i) result[i] = F::common(x[i]);
    IntOf<T> any = 0;
    for (int64_t i = 0; i < count; ++i) any |= F::is_rare(x[i]);
    if (any) {
      for (int64_t i = 0; i < count; ++i) {
        if (F::is_rare(x[i])) result[i] = F::rare(x[i]);
      }
    }
    for (int64_t i = 0; i < count; ++i) out[start + i] = result[i];
  }
}

template <class F, class T>
inline void block(F f, const T* in, T* out, int64_t n) {
  if constexpr (HasRarePath<F, T>) {
    block_with_rare_path<F>(in, out, n);
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = f(in[i]);
  }
}

template <class F, class T>
inline void block(F f, const T* a, const T* b, T* out, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = f(a[i], b[i]);
}

}  // namespace tn::TN_LEVEL::math
