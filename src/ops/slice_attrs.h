#pragma once
// Slices as attributes, shared by reading (`slice`) and writing (`slice_update`).
#include "ir/attrs.h"

namespace tn::ops {

/// A stop beyond every extent: to the end of the axis, also when its size is a symbol.
inline constexpr int64_t kToEnd = INT64_MAX;

/// Per axis in `axis`. When recorded: axes sorted, 0 <= start <= stop <= extent, step >= 1, and
/// stop is one past the last element taken.
struct SliceAttrs {
  Offsets start, stop;
  Maybe<Ints> step;
  Maybe<Axes> axis;
  static constexpr void fields(auto& a, auto&& f) {
    f("start", a.start, required), f("stop", a.stop, required), f("step", a.step),
        f("axis", a.axis);
  }
};

struct SliceBounds {
  Offset start, stop;
  int64_t step;
};

/// Makes `a` canonical for `x` and returns the axes that were sliced backwards: the slice is then
/// of `x` flipped along them.
Axes normalise(SliceAttrs& a, const Type& x, std::string_view op);
/// Bounds as Python reads them, made canonical; of the flipped axis when the step is negative.
SliceBounds canonical_bounds(SliceBounds b, Dim extent, std::string_view op);
/// The number of elements that canonical slice `i` takes.
Dim slice_extent(const SliceAttrs& a, int i);

}  // namespace tn::ops
