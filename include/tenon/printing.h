#pragma once
// How tensors are printed, in the whole process.
#include <iosfwd>

#include "tenon/shape.h"

namespace tn {

class Tensor;

/// Writes `x.to_string()`.
std::ostream& operator<<(std::ostream& out, const Tensor& x);

struct PrintOptions {
  /// Most digits after the point. Left out: 8, and more where all elements are below 0.1, so that
  /// the largest has 8 significant ones. Digits that the element type does not hold are never
  /// shown.
  Maybe<int> precision = {};
  /// Tensors with more elements than this show their edges only.
  int64_t threshold = 1000;
  /// Elements at each end of an axis that is shortened.
  int64_t edgeitems = 3;
  /// Columns of a line. Vectors continue on the next one; rows of matrices leave out columns.
  int64_t linewidth = 80;
  /// Small numbers are not written with an exponent.
  bool suppress = false;
  /// Whether numbers have an exponent. Left out: when one is 1e8 or more or below 1e-4, or the
  /// largest is more than 1,000 times the smallest.
  Maybe<bool> sci_mode = {};
};

PrintOptions print_options();
/// Returns the former options. Negative numbers are errors.
PrintOptions set_print_options(const PrintOptions& options);

}  // namespace tn
