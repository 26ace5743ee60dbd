#pragma once
// Views: ways to read a tensor in another order without touching its elements.
#include "ir/type.h"

namespace tn {

/// result[i...] = operand[map(i...)], for the maps that movement ops are made of.
struct View {
  enum class Kind : uint8_t { reshape, permute, broadcast, slice, reverse, window };
  Kind kind = Kind::reshape;
  Shape shape;    // of the result
  Perm perm;      // permute: result axis k is operand axis perm[k]
  Offsets start;  // slice: operand index = start + step·i, per axis
  Ints step;
  Axes axes;      // reverse
  Ints dilation;  // window: operand index = step·place + dilation·i, per trailing axis
};

/// Elements of a buffer addressed by strides: offset + Σ stride·index, in elements.
struct Strided {
  int64_t offset = 0;
  Shape shape;
  Ints strides;

  static Strided row_major(const Shape& shape);
  bool is_contiguous() const;  // row-major from `offset`, ignoring axes of extent 1
};

/// `view` of `from`, or nothing when strides cannot express it (a reshape across a gap).
std::optional<Strided> apply(const View& view, const Strided& from);

}  // namespace tn
