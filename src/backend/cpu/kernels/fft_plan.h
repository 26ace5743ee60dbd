#pragma once
// The tables for Fourier transforms of one length, and how that length is taken apart.
#include <memory>
#include <vector>

#include "backend/cpu/kernels/fft_kernels.h"

namespace tn {

template <class R>
struct FftNumbers {
  std::vector<R> re, im;
  FftTable<R> table(int64_t from = 0) const { return {re.data() + from, im.data() + from}; }
};

/// One of three ways to transform n numbers:
/// - n = product of 2, 3, 4, 5, 7, 11 and 13: `stages`, one pass each.
/// - the same and n long: as a matrix, n = rows · columns. Transforms of the columns, a product
///   with `between`, then transforms of the rows, so that each stays in the cache.
/// - else (Bluestein): jk = (j² + k² - (k-j)²)/2 makes it a convolution with a chirp, which is a
///   product between transforms of the `longer` length.
template <class R>
struct FftPlan {
  using Ref = std::shared_ptr<const FftPlan>;
  int64_t n = 0;
  std::vector<FftStage> stages;
  FftNumbers<R> twiddles;
  Ref rows, columns;      // long: `columns` transforms a column, of n / rows->n numbers
  FftNumbers<R> between;  // exp(-2πi jk/n), row j
  Ref longer;
  FftNumbers<R> chirp, spectrum;  // exp(-πi j²/n); the transform of its conjugate, over longer->n
  FftNumbers<R> real_roots;       // exp(-πi k/n), k <= n: for 2n reals

  /// Numbers a line needs in memory while it is transformed.
  int64_t extent() const { return longer ? longer->n : n; }
  /// Transformed one at a time, each by all threads.
  bool is_long() const { return columns || (longer && longer->is_long()); }
};

/// The plan for n numbers, or for 2n reals when `real`; the plans used last are kept.
template <class R>
typename FftPlan<R>::Ref fft_plan(int64_t n, bool real);

}  // namespace tn
