// The inner loops of convolutions, compiled once per CPU level.
#include <utility>

#include "backend/cpu/kernels/conv_kernels.h"
#include "backend/cpu/kernels/level_vectors.h"

namespace tn::TN_LEVEL {
namespace {

// Sums, one row of weights and one element of x fill the registers; rows are few, so that their
// addresses stay in registers too.
#if defined(__AVX512F__)
constexpr int kRows = 6, kVectors = 4;
#elif defined(__AVX2__)
constexpr int kRows = 6, kVectors = 2;
#else
constexpr int kRows = 4, kVectors = 2;
#endif

template <class T, int Rows, int Vectors>
void fixed_tile(const ConvWindows& windows, const T* w, T* sums, int64_t stride, bool add) {
  Vec<T> sum[Rows][Vectors] = {};
  if (add) {
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) sum[r][v] = load(sums + r * stride + v * kLanes<T>);
  }
  for (int64_t s = 0; s < windows.segments; ++s) {
    const T* row[Rows];
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) row[r] = static_cast<const T*>(windows.at[s * Rows + r]);
    for (int64_t k = 0; k < windows.run; ++k, w += Vectors * kLanes<T>) {
      Vec<T> right[Vectors];
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) {
        right[v] = load(w + v * kLanes<T>);
        __builtin_prefetch(w + 16 * Vectors * kLanes<T> + v * kLanes<T>);
      }
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) {
        Vec<T> left = row[r][k] - Vec<T>{};
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) sum[r][v] = fma(left, right[v], sum[r][v]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) store(sums + r * stride + v * kLanes<T>, sum[r][v]);
}

template <class T>
using FixedTile = void (*)(const ConvWindows&, const T*, T*, int64_t, bool);

template <class T, int... N>
constexpr FixedTile<T> pick_tile(int64_t rows, int64_t vectors, std::integer_sequence<int, N...>) {
  constexpr FixedTile<T> kTiles[] = {fixed_tile<T, N / kVectors + 1, N % kVectors + 1>...};
  return kTiles[(rows - 1) * kVectors + vectors - 1];
}

template <class T>
void tile(const ConvWindows& windows, int64_t vectors, const T* w, T* sums, int64_t stride,
          bool add) {
  constexpr auto kAll = std::make_integer_sequence<int, kRows * kVectors>();
  pick_tile<T>(windows.rows, vectors, kAll)(windows, w, sums, stride, add);
}

template <class T, int Rows>
void fixed_depthwise(const ConvWindows& windows, const T* w, T* sums, int64_t stride) {
  int64_t channels = windows.run, j = 0;
  for (; j + kLanes<T> <= channels; j += kLanes<T>) {
    Vec<T> sum[Rows] = {};
    for (int64_t s = 0; s < windows.segments; ++s) {
      Vec<T> right = load(w + s * channels + j);
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r)
        sum[r] = fma(load(static_cast<const T*>(windows.at[s * Rows + r]) + j), right, sum[r]);
    }
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) store(sums + r * stride + j, sum[r]);
  }
  for (; j < channels; ++j)
    for (int r = 0; r < Rows; ++r) {
      T sum = 0;
      for (int64_t s = 0; s < windows.segments; ++s)
        sum = fma(static_cast<const T*>(windows.at[s * Rows + r])[j], w[s * channels + j], sum);
      sums[r * stride + j] = sum;
    }
}

template <class T>
using FixedDepthwise = void (*)(const ConvWindows&, const T*, T*, int64_t);

template <class T, int... R>
constexpr FixedDepthwise<T> pick_depthwise(int64_t rows, std::integer_sequence<int, R...>) {
  constexpr FixedDepthwise<T> kRowCounts[] = {fixed_depthwise<T, R + 1>...};
  return kRowCounts[rows - 1];
}

template <class T>
void depthwise(const ConvWindows& windows, const T* w, T* sums, int64_t stride) {
  constexpr auto kAll = std::make_integer_sequence<int, kRows>();
  pick_depthwise<T>(windows.rows, kAll)(windows, w, sums, stride);
}

template <class T, int Rows, int Vectors>
void fixed_gradient(const void* const* at, int64_t places, const T* ct, int64_t ct_stride,
                    int64_t row0, T* sums, int64_t stride, bool add) {
  Vec<T> sum[Rows][Vectors] = {};
  for (int64_t p = 0; p < places; ++p, ct += ct_stride) {
    const T* x = static_cast<const T*>(at[p]) + row0;
    Vec<T> right[Vectors];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) right[v] = load(ct + v * kLanes<T>);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      Vec<T> left = x[r] - Vec<T>{};
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) sum[r][v] = fma(left, right[v], sum[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      T* to = sums + r * stride + v * kLanes<T>;
      store(to, add ? load(to) + sum[r][v] : sum[r][v]);
    }
}

template <class T>
using FixedGradient = void (*)(const void* const*, int64_t, const T*, int64_t, int64_t, T*, int64_t,
                               bool);

template <class T, int... N>
constexpr FixedGradient<T> pick_gradient(int64_t rows, int64_t vectors,
                                         std::integer_sequence<int, N...>) {
  constexpr FixedGradient<T> kTiles[] = {fixed_gradient<T, N / kVectors + 1, N % kVectors + 1>...};
  return kTiles[(rows - 1) * kVectors + vectors - 1];
}

template <class T>
void gradient(const void* const* at, int64_t places, int64_t rows, int64_t vectors, const T* ct,
              int64_t ct_stride, T* sums, int64_t stride, bool add) {
  constexpr auto kAll = std::make_integer_sequence<int, kRows * kVectors>();
  for (int64_t r = 0; r < rows; r += kRows) {
    int64_t count = rows - r < kRows ? rows - r : kRows;
    pick_gradient<T>(count, vectors, kAll)(at, places, ct, ct_stride, r, sums + r * stride, stride,
                                           add);
  }
}

/// Several vectors of channels at once: each is one chain, which waits for itself.
template <class T, int Vectors>
void channel_sums(const void* const* at, int64_t places, int64_t j, const T* ct, int64_t ct_stride,
                  T* sums, bool add) {
  Vec<T> sum[Vectors] = {};
  for (int64_t p = 0; p < places; ++p)
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v)
      sum[v] = fma(load(static_cast<const T*>(at[p]) + j + v * kLanes<T>),
                   load(ct + p * ct_stride + j + v * kLanes<T>), sum[v]);
#pragma GCC unroll 8
  for (int v = 0; v < Vectors; ++v) {
    T* to = sums + j + v * kLanes<T>;
    store(to, add ? load(to) + sum[v] : sum[v]);
  }
}

template <class T>
void depthwise_gradient(const void* const* at, int64_t places, int64_t channels, const T* ct,
                        int64_t ct_stride, T* sums, bool add) {
  int64_t j = 0;
  for (; j + 8 * kLanes<T> <= channels; j += 8 * kLanes<T>)
    channel_sums<T, 8>(at, places, j, ct, ct_stride, sums, add);
  for (; j + kLanes<T> <= channels; j += kLanes<T>)
    channel_sums<T, 1>(at, places, j, ct, ct_stride, sums, add);
  for (; j < channels; ++j) {
    T sum = 0;
    for (int64_t p = 0; p < places; ++p)
      sum = fma(static_cast<const T*>(at[p])[j], ct[p * ct_stride + j], sum);
    sums[j] = add ? sums[j] + sum : sum;
  }
}

template <class T>
constexpr ConvKernels<T> kernels() {
  return {kRows, kLanes<T>, kVectors, tile<T>, depthwise<T>, gradient<T>, depthwise_gradient<T>};
}

}  // namespace

extern const ConvLevel conv_level;
constinit const ConvLevel conv_level = {kernels<float>(), kernels<double>()};

}  // namespace tn::TN_LEVEL
