#pragma once
// Lowering: what an op's `lower` rule sees. It adds axes, loads operands by coordinates, stores
// results.
#include "ir/opdef.h"
#include "loop/builder.h"

namespace tn::loop {

/// One element of a tensor: a scalar, or two for complex tensors.
struct Element {
  S re, im;
  bool is_complex() const { return im.builder != nullptr; }
};

/// Coordinates of an element, one polynomial per axis.
using Coords = std::vector<PolyId>;

class Lowering {
 public:
  Lowering(std::string name, Types in, Types out);

  Builder b;
  Types in, out;

  /// Adds one loop per dimension of `shape` and returns its coordinates.
  Coords loops(const Shape& shape, AxisKind kind = AxisKind::par);
  PolyId number(Dim value);  // a size as a polynomial
  PolyId add(PolyId a, PolyId b), sub(PolyId a, PolyId b), mul(PolyId a, Dim factor);
  /// Row-major position of `at` in `shape`.
  PolyId flatten(const Shape& shape, const Coords& at);

  /// The element of operand or result k at coordinates. Complex ones come as pairs; narrow floats
  /// as stored.
  Element load(int operand, const Coords& at, MaskId mask = kNone);
  void store(int result, const Coords& at, Element value, MaskId mask = kNone,
             Combine combine = Combine::set);
  /// A real operand, widened to the type it computes in (bf16 → f32).
  S load_real(int operand, const Coords& at, MaskId mask = kNone);
  /// Rounds `value` to the result's type and stores it.
  void store_real(int result, const Coords& at, S value, MaskId mask = kNone,
                  Combine combine = Combine::set);

  /// 0 <= at < extent, as a mask; and the conjunction of several.
  MaskId inside(const std::vector<std::pair<PolyId, Dim>>& bounds);
  /// A loaded integer as a coordinate: clamped into [0, extent).
  PolyId coordinate(S value, Dim extent);

  int in_buffer(int operand) const { return operand; }
  int out_buffer(int result) const { return static_cast<int>(in.size()) + result; }
};

Element select(S condition, Element yes, Element no);

}  // namespace tn::loop
