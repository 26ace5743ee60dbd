#pragma once
// Ops with graphs that run: how they are recorded.
#include <optional>

#include "ir/body.h"
#include "plan/plan.h"

namespace tn::ops {

/// Operands: the predicate, then what both graphs take.
struct CondAttrs {
  GraphRef then, otherwise;
  static constexpr void fields(auto& a, auto&& f) {
    f("then", a.then, required), f("otherwise", a.otherwise, required);
  }
};

/// Operands: the carry, then constants. Both graphs take all of them.
struct WhileAttrs {
  GraphRef go_on, body;
  static constexpr void fields(auto& a, auto&& f) {
    f("go_on", a.go_on, required), f("body", a.body, required);
  }
};

/// Operands: the carry, xs, constants. The body takes the carry, slices of xs and the constants; it
/// gives the new carry and slices of ys. The last `saved` ys are the carry as the body was given
/// it, kept for a derivative.
struct ScanAttrs {
  GraphRef body;
  int64_t carries = 0, xs = 0;
  Dim length = 0;
  int64_t saved = 0;
  bool reverse = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("body", a.body, required), f("carries", a.carries), f("xs", a.xs), f("length", a.length),
        f("saved", a.saved), f("reverse", a.reverse);
  }
};

/// The kind of step that such an op becomes; none for other ops.
std::optional<ControlStep::Kind> control_kind(const OpDef& op);

/// A body that also gives the carry it was given.
GraphRef saving_carry(GraphRef body, int64_t carries);

// Lists of tensors, as rules of these ops take them apart and put them together.

inline Tensors operator+(Tensors a, const Tensors& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
inline Mask operator+(Mask a, const Mask& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
inline Tensors part(const Tensors& list, size_t first, size_t count) {
  auto at = list.begin() + static_cast<ptrdiff_t>(first);
  return {at, at + static_cast<ptrdiff_t>(count)};
}
inline Mask part(const Mask& mask, size_t first, size_t count) {
  auto at = mask.begin() + static_cast<ptrdiff_t>(first);
  return {at, at + static_cast<ptrdiff_t>(count)};
}
/// Which have derivatives.
Mask inexact_mask(const Tensors& list);
/// Zeros of the types of `like` where `list` is null and `mask` holds.
Tensors filled_like(Tensors list, const Tensors& like, const Mask& mask);
/// Parameters of the same types.
Tensors params_like(const Tensors& list);
/// The type of one element along the first axis: a slice of xs, an example of a batch.
Type slice_type(Type type);
/// Parameters for one element along the first axis of each.
Tensors slice_params(const Tensors& xs);
/// Whether they are one type, as far as sizes can be asked.
bool same_type(const Type& a, const Type& b);
/// Fails unless operands have the types that the graph's inputs have.
void check_inputs(std::string_view op, const Graph& graph, std::span<const TypeRef> in);
std::vector<Type> output_types(const Graph& graph);

}  // namespace tn::ops
