#pragma once
// Vectors of the level that a `*.level.cpp` file is compiled for.
#include <cstdint>
#include <cstring>
#if defined(__FMA__)
#include <immintrin.h>
#endif

namespace tn::TN_LEVEL {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif

typedef float VecF __attribute__((vector_size(kVectorBytes)));
typedef double VecD __attribute__((vector_size(kVectorBytes)));

template <class T>
struct Lanes;
template <>
struct Lanes<float> {
  using Vec = VecF;
};
template <>
struct Lanes<double> {
  using Vec = VecD;
};

template <class T>
using Vec = typename Lanes<T>::Vec;
template <class T>
inline constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));

[[gnu::always_inline]] inline float fma(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
[[gnu::always_inline]] inline double fma(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}

[[gnu::always_inline]] inline VecF fma(VecF a, VecF b, VecF c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_ps(a, b, c);
#else
  for (int i = 0; i < kLanes<float>; ++i) c[i] = fma(a[i], b[i], c[i]);
  return c;
#endif
}

[[gnu::always_inline]] inline VecD fma(VecD a, VecD b, VecD c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_pd(a, b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_pd(a, b, c);
#else
  for (int i = 0; i < kLanes<double>; ++i) c[i] = fma(a[i], b[i], c[i]);
  return c;
#endif
}

template <class T>
[[gnu::always_inline]] inline Vec<T> load(const T* at) {
  Vec<T> v;
  std::memcpy(&v, at, sizeof v);
  return v;
}

template <class T>
[[gnu::always_inline]] inline void store(T* at, Vec<T> v) {
  std::memcpy(at, &v, sizeof v);
}

}  // namespace tn::TN_LEVEL
