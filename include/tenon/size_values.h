#pragma once
// Sizes compared with numbers in programs: `x.shape()[0] == 4`. In a traced function the answer is
// that for the size of the call, and the trace serves sizes with the same answer. The library does
// not include this: it asks whether sizes are the same expression.
#include <utility>

#include "tenon/dim.h"

namespace tn {

template <std::integral T>
  requires(!std::same_as<T, bool>)
constexpr bool operator==(Dim size, T value) {
  if (size.is_const()) return std::cmp_equal(size.raw, value);
  if (std::cmp_less(value, 0)) return size.is_inferred() && std::cmp_equal(value, -1);
  return size >= Dim(value) && size <= Dim(value);
}

}  // namespace tn
