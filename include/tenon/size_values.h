#pragma once
// Comparisons of shapes, and of a size with a number, in programs: `x.shape() == y.shape()`,
// `x.shape()[0] == 4`. In a traced function the answer is that for the sizes of the call, and the
// trace serves sizes with the same answer. The library does not include this: it asks whether sizes
// are the same expressions.
#include <algorithm>
#include <utility>

#include "tenon/shape.h"

namespace tn {

template <std::integral T>
  requires(!std::same_as<T, bool>)
constexpr bool operator==(Dim size, T value) {
  if (size.is_const()) return std::cmp_equal(size.raw, value);
  if (std::cmp_less(value, 0)) return size.is_inferred() && std::cmp_equal(value, -1);
  return size >= Dim(value) && size <= Dim(value);
}

inline bool operator==(const Shape& a, const Shape& b) {
  auto same = [](Dim x, Dim y) { return x >= y && x <= y; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

}  // namespace tn
