#pragma once
// Attributes of the movement primitives and of concat; slices have theirs in ops/slice_attrs.h.
#include "ir/attrs.h"

namespace tn::ops {

struct ShapeAttrs {
  Shape shape;
  static constexpr void fields(auto& a, auto&& f) { f("shape", a.shape, required); }
};

struct PermAttrs {
  Maybe<Perm> axes;
  static constexpr void fields(auto& a, auto&& f) { f("axes", a.axes); }
};

struct FlipAttrs {
  Maybe<Axes> axis;
  static constexpr void fields(auto& a, auto&& f) { f("axis", a.axis); }
};

struct ConcatAttrs {
  Maybe<Axis> axis = Axis(0);
  static constexpr void fields(auto& a, auto&& f) { f("axis", a.axis); }
};

}  // namespace tn::ops
