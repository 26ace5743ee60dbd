#pragma once
// Limits of element types, kinds of them, and what promotes to what.
//
//     double eps = tn::finfo(tn::bfloat16).eps;
#include <initializer_list>

#include "tenon/dtype.h"
#include "tenon/shape.h"

namespace tn {

/// Limits of a floating-point type; of a complex one those of its parts.
struct FloatInfo {
  int bits;
  double eps, max, min, smallest_normal;
  DType dtype;
};
FloatInfo finfo(DType type);

/// Limits of an integer type.
struct IntegerInfo {
  int bits;
  int64_t min;
  uint64_t max;
  DType dtype;
};
IntegerInfo iinfo(DType type);

/// Whether a type is of a kind: `isdtype(x.dtype(), {Kind::integer, Kind::natural})`.
bool isdtype(DType type, std::initializer_list<Kind> kinds);
/// Whether promotion can convert `from` to `to`.
bool can_cast(DType from, DType to);
/// The type that all types promote to.
DType result_type(std::initializer_list<DType> types);
/// The shape that all shapes broadcast to.
Shape broadcast_shapes(std::initializer_list<Shape> shapes);

}  // namespace tn
