#pragma once
// What convolve.cpp asks of the kernels that are compiled once per CPU level.
#include <cstdint>

namespace tn {

/// The windows of the rows of a tile: each is `segments` runs of `run` elements of x.
/// Segment s of row r begins at at[s * rows + r].
struct ConvWindows {
  const void* const* at;
  int64_t rows, segments, run;
};

template <class T>
struct ConvKernels {
  int64_t rows;          // most rows of a tile
  int64_t vector;        // elements of a vector
  int64_t most_vectors;  // of the columns of a tile
  /// sums[r][j] (+)= Σ window[r][k] · w[k * columns + j], with ascending k, for `vectors` of
  /// columns.
  void (*tile)(const ConvWindows& windows, int64_t vectors, const T* w, T* sums,
               int64_t sums_stride, bool add);
  /// sums[r][j] = Σ at[s * rows + r][j] · w[s * run + j] over the segments: each channel has its
  /// own kernel.
  void (*depthwise)(const ConvWindows& windows, const T* w, T* sums, int64_t sums_stride);
  /// sums[r][j] (+)= Σ at[p][r] · ct[p * ct_stride + j] over `places` p in order, for `rows` r and
  /// `vectors` of columns.
  void (*gradient)(const void* const* at, int64_t places, int64_t rows, int64_t vectors,
                   const T* ct, int64_t ct_stride, T* sums, int64_t sums_stride, bool add);
  /// sums[j] (+)= Σ at[p][j] · ct[p * ct_stride + j], for `channels` j.
  void (*depthwise_gradient)(const void* const* at, int64_t places, int64_t channels, const T* ct,
                             int64_t ct_stride, T* sums, bool add);
};

struct ConvLevel {
  ConvKernels<float> f32;
  ConvKernels<double> f64;
};

namespace v2 {
extern const ConvLevel conv_level;
}
namespace v3 {
extern const ConvLevel conv_level;
}
namespace v4 {
extern const ConvLevel conv_level;
}

}  // namespace tn
