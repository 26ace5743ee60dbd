#pragma once
// What reading (gather) and writing (scatter) by index tensors share.
#include "ir/node.h"

namespace tn::ops {

enum class ScatterMode : uint8_t { set, add, mul, max, min };
inline constexpr std::string_view kScatterModes[] = {"set", "add", "mul", "max", "min"};
constexpr ChoiceNames choice_names(ScatterMode) { return kScatterModes; }

/// How an index out of bounds is treated: as an error where indices are checked; clamped to the
/// nearest element; or dropped, so that a write has no effect and a read gives 0. The last two are
/// errors where indices are checked, and clamp or drop elsewhere.
enum class OutOfRange : uint8_t { check, clamp, drop, check_clamp, check_drop };
inline constexpr std::string_view kOutOfRange[] = {"check", "clamp", "drop", "check_clamp",
                                                   "check_drop"};
constexpr ChoiceNames choice_names(OutOfRange) { return kOutOfRange; }
constexpr bool is_checked(OutOfRange outside) {
  return outside != OutOfRange::clamp && outside != OutOfRange::drop;
}
/// Without checks, `check` clamps where it reads and drops where it writes. Derivatives, which
/// write where the op read, say so.
constexpr OutOfRange for_reading(OutOfRange outside) {
  return outside == OutOfRange::check ? OutOfRange::check_clamp : outside;
}
constexpr OutOfRange for_writing(OutOfRange outside) {
  return outside == OutOfRange::check ? OutOfRange::check_drop : outside;
}
constexpr OutOfRange without_check(OutOfRange outside) {
  if (outside == OutOfRange::check_clamp) return OutOfRange::clamp;
  return outside == OutOfRange::check_drop ? OutOfRange::drop : outside;
}
constexpr OutOfRange when_reading(OutOfRange outside) {
  return without_check(for_reading(outside));
}
constexpr OutOfRange when_writing(OutOfRange outside) {
  return without_check(for_writing(outside));
}

/// Indices are paired with `axes`. The first `batch_dims` axes of the operand and of the indices
/// are the same axes: each example has indices of its own.
struct GatherAttrs {
  Axes axes;
  int64_t batch_dims = 0;
  OutOfRange outside = OutOfRange::check;
  static constexpr void fields(auto& a, auto&& f) {
    f("axes", a.axes, required), f("batch_dims", a.batch_dims), f("outside", a.outside);
  }
};

struct ScatterAttrs {
  Axes axes;
  ScatterMode mode = ScatterMode::set;
  int64_t batch_dims = 0;
  OutOfRange outside = OutOfRange::check;
  static constexpr void fields(auto& a, auto&& f) {
    f("axes", a.axes, required), f("mode", a.mode), f("batch_dims", a.batch_dims),
        f("outside", a.outside);
  }
};

/// Checks the index tensors in[first], … against `axes` of in[0] and sorts both by axis.
void sort_indices(std::string_view op, Axes& axes, Tensors& in, size_t first);
/// Fails where one of these indices is computed already and out of bounds, if that is an error.
void check_known(std::string_view op, OutOfRange outside, const Axes& axes, const Tensors& in,
                 size_t first);
/// The shape to which the index types broadcast.
Shape index_shape(std::string_view op, Types indices);
/// The shape of x[indices]: the index axes in the place of the first indexed axis, the rest after.
/// Fails when there is something to find along an axis without elements.
Shape indexed_shape(std::string_view op, const Type& x, const Axes& axes, int64_t batch_dims,
                    const Shape& indices);

/// Indices along `axis` of `x`, of which negative ones count from the end: those that are known are
/// checked for `op`, all are counted from the front.
Tensor wrap_negative(std::string_view op, const Tensor& indices, const Type& x, int axis);
/// The elements of `x` at `indices` of the same rank and, but for `axis`, the same shape, all
/// counted from the front.
Tensor read_along(const Tensor& x, const Tensor& indices, int axis);
/// 0, 1, … along `axis` of a shape of `rank` axes, all others of extent 1.
Tensor positions(Dim extent, int rank, int axis);
/// Indices along one axis of tensors of their own rank: axes before it are batch axes, those after
/// it are indexed by their positions.
struct AlongIndices {
  Axes axes;
  Tensors indices;
  AlongIndices(const Tensor& lines, int axis);
};

/// Attributes and index operands of a batched gather or scatter whose operand has the batch as axis
/// 0: in[first], … of `call`.
struct BatchedIndices {
  Axes axes;
  int64_t batch_dims;
  Tensors indices;
};
BatchedIndices batch_indices(const Axes& axes, int64_t batch_dims, const BatchCall& call,
                             size_t first);
/// Where the blocks of a batch begin, one start for each axis. Axes taken whole begin at 0.
struct BlockStarts {
  Tensors values;
  bool batched = false;
  BlockStarts(const Shape& shape, const Shape& sizes, const BatchCall& call, size_t first);
};
/// The indices of a block of `sizes` of `shape` that begins at `starts`, each clamped so that it
/// lies inside. Starts that are batched, along axis 0, give the indices that axis too. Axes taken
/// whole at either end are left out.
struct BlockIndices {
  Axes axes;
  Tensors indices;
};
BlockIndices index_block(const Shape& shape, const Shape& sizes, std::span<const Tensor> starts);

}  // namespace tn::ops
