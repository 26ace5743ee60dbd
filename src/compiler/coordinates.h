#pragma once
// Coordinates: from a point of a result to the points of the operands it is made of.
#include "ir/graph.h"
#include "loop/lowering.h"

namespace tn {

using loop::Coords;

inline Dim elements_of(const InternedType& type) {
  return type.elements >= 0 ? Dim(type.elements) : type.shape.elements();
}

/// The point of an operand of shape `from` that `view` shows at `at`.
Coords through_view(PolyTable& t, const View& view, const Shape& from, const Coords& at);

/// The point of an operand of shape `from` that meets `at` of the shape `to` by broadcasting.
Coords broadcast_point(PolyTable& t, const Shape& from, const Coords& at, const Shape& to);

/// Row-major position of `at` in `shape`, and back.
PolyId position(PolyTable& t, const Shape& shape, const Coords& at);
Coords point(PolyTable& t, const Shape& shape, PolyId position);

/// The point of a reduction's operand of shape `from`: `at` of its result, and the position among
/// the reduced elements.
Coords reduced_point(PolyTable& t, const Shape& from, const Axes& reduced, bool keepdims,
                     const Coords& at, PolyId among);

}  // namespace tn
