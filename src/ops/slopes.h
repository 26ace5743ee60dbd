#pragma once
// Formulas that the derivatives of several ops share.
#include "ops/rules.h"
#include "tenon/operators.h"

namespace tn::ops {

/// `x` with ones for its zeros: a divisor where the quotient is multiplied by 0.
inline Tensor zeros_as_ones(T x) { return tn::where(x == 0, 1, x); }

/// `t` where `x` lies between the bounds, 0 at them and beyond.
inline Tensor where_inside(T t, T x, double low, double high) {
  return tn::where(tn::logical_and(x > low, x < high), t, 0);
}

/// `t * slope(x)`, computed as elementwise ops are: narrow floats in f32, and rounded once.
template <class F>
Tensor times_slope(T t, T x, F slope) {
  DType wide = info(x.dtype()).compute;
  return cast_to(cast_to(t, wide) * slope(cast_to(x, wide)), t.dtype());
}

}  // namespace tn::ops
