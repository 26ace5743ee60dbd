#pragma once
// Attributes of sums and products, with and without NaN.
#include "ir/attrs.h"

namespace tn::ops {

struct SumAttrs {
  Maybe<Axes> axis;
  Maybe<DType> dtype;
  bool keepdims = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("axis", a.axis), f("dtype", a.dtype), f("keepdims", a.keepdims);
  }
};

}  // namespace tn::ops
