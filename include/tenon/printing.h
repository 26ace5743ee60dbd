#pragma once
// Tensors and their types in streams; print options of tensors, for the whole process.
#include <iosfwd>

#include "tenon/device.h"
#include "tenon/shape.h"
#include "tenon/tensor.h"

namespace tn {

/// A tensor in a stream, with the place in the program: `std::cout << x`.
struct Printed {
  const Tensor& tensor;
  std::source_location place;
  Printed(const Tensor& x, std::source_location at = std::source_location::current())
      : tensor(x), place(at) {}
  Printed(const Selection& x, std::source_location at = std::source_location::current())
      : tensor(x.value()), place(at) {}
};
/// Writes `x.to_string()`.
std::ostream& operator<<(std::ostream& out, const Printed& x);
/// "[8,16]", "8", "float32", "cuda:1".
std::ostream& operator<<(std::ostream& out, const Shape& shape);
std::ostream& operator<<(std::ostream& out, Dim size);
std::ostream& operator<<(std::ostream& out, DType type);
std::ostream& operator<<(std::ostream& out, Device device);

struct PrintOptions {
  /// The maximum number of digits after the point. Default: 8, or more if all elements are below
  /// 0.1, so that the largest has 8 significant digits. Digits beyond the precision of the element
  /// type are never shown.
  Maybe<int> precision = {};
  /// Tensors with more elements than this are abbreviated.
  int64_t threshold = 1000;
  /// Elements at each end of an abbreviated axis.
  int64_t edgeitems = 3;
  /// Columns of a line. Vectors continue on the next line; rows of matrices omit columns.
  int64_t linewidth = 80;
  /// Small numbers are printed without an exponent.
  bool suppress = false;
  /// Whether numbers have an exponent. Default: if one is 1e8 or more or below 1e-4, or the
  /// largest is more than 1,000 times the smallest.
  Maybe<bool> sci_mode = {};
};

PrintOptions print_options();
/// Returns the previous options. Negative numbers are errors.
PrintOptions set_print_options(const PrintOptions& options);

}  // namespace tn
