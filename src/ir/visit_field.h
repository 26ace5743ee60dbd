#pragma once
// What a field of attributes holds, as its own type: the one place that goes through all kinds.
#include "ir/attrs.h"

namespace tn {

/// Several functions as one, for visit_field.
template <class... F>
struct Overloads : F... {
  using F::operator()...;
};
template <class... F>
Overloads(F...) -> Overloads<F...>;

/// Calls `visit` with the value, of which a choice is a uint8_t.
template <class F>
auto visit_field(const Field& field, F&& visit) {
  switch (field.kind) {
    case FieldKind::boolean:
      return visit(*static_cast<bool*>(field.at));
    case FieldKind::integer:
      return visit(*static_cast<int64_t*>(field.at));
    case FieldKind::real:
      return visit(*static_cast<double*>(field.at));
    case FieldKind::axis:
      return visit(*static_cast<Axis*>(field.at));
    case FieldKind::axes:
      return visit(*static_cast<Axes*>(field.at));
    case FieldKind::perm:
      return visit(*static_cast<Perm*>(field.at));
    case FieldKind::size:
      return visit(*static_cast<Dim*>(field.at));
    case FieldKind::shape:
      return visit(*static_cast<Shape*>(field.at));
    case FieldKind::ints:
      return visit(*static_cast<Ints*>(field.at));
    case FieldKind::offsets:
      return visit(*static_cast<Offsets*>(field.at));
    case FieldKind::dtype:
      return visit(*static_cast<DType*>(field.at));
    case FieldKind::choice:
      return visit(*static_cast<uint8_t*>(field.at));
    case FieldKind::text:
      return visit(*static_cast<std::string_view*>(field.at));
    case FieldKind::graph:
      return visit(*static_cast<GraphRef*>(field.at));
    case FieldKind::scalar:
      break;
  }
  return visit(*static_cast<Scalar*>(field.at));
}

}  // namespace tn
