#pragma once
// What fourier_transform.cpp asks of the kernels that are compiled once per CPU level.
//
// A kernel works on one line, or on as many side by side as a vector has lanes: number j of lane l
// lies at re[j * lanes + l] and im[j * lanes + l]. Lanes do not mix, so bits do not depend on them.
#include <cstdint>

namespace tn {

template <class R>
struct FftSplit {
  R *re, *im;
  FftSplit swapped() const { return {im, re}; }
};

template <class R>
struct FftTable {
  const R *re, *im;
};

/// One pass over a line: butterflies of `radix` over numbers that are m·stride apart.
struct FftStage {
  int64_t radix, m, stride;
  int64_t twiddles;  // where exp(-2πi pk/(radix·m)) for p < m, 0 < k < radix begin
  int64_t roots;     // where exp(-2πi k/radix), k < radix, begin; odd radices only
};

template <class R>
struct FftStages {
  const FftStage* stages;
  int64_t count;
  FftTable<R> table;
};

/// Numbers in memory: number j of lane l at at[l·lane + j·step], its imaginary part `part` further;
/// real numbers have part 0.
template <class T>
struct FftLines {
  T* at;
  int64_t lane, step, part;
};

template <class R>
struct FftKernels {
  int64_t lanes;  // of a vector
  /// Transforms in `data` and `work` and returns the one that holds the result.
  FftSplit<R> (*transform)(const FftStages<R>& s, bool wide, FftSplit<R> data, FftSplit<R> work);
  void (*load)(const FftLines<const R>& from, bool wide, int64_t count, FftSplit<R> to);
  /// Multiplies by `scale`, the imaginary part by `im_scale`.
  void (*store)(FftSplit<R> from, bool wide, int64_t count, R scale, R im_scale,
                const FftLines<R>& to);
  /// data[j] *= table[j · step], the lanes of a row of the table side by side when `across`.
  void (*multiply)(FftTable<R> table, bool wide, int64_t count, int64_t step, bool across,
                   FftSplit<R> data);
  /// From the transform of m pairs of reals, that of the 2m reals: m + 1 numbers.
  void (*unpack)(FftTable<R> roots, bool wide, int64_t m, FftSplit<R> from, FftSplit<R> to);
  /// The way back: of m + 1 numbers, what the inverse transform makes m pairs of reals of.
  void (*pack)(FftTable<R> roots, bool wide, int64_t m, FftSplit<R> from, FftSplit<R> to);
};

struct FftLevel {
  FftKernels<float> f32;
  FftKernels<double> f64;
};

namespace v2 {
extern const FftLevel fft_level;
}
namespace v3 {
extern const FftLevel fft_level;
}
namespace v4 {
extern const FftLevel fft_level;
}

}  // namespace tn
