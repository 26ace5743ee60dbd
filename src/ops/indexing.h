#pragma once
// What reading (gather) and writing (scatter) by index tensors share.
#include "ir/node.h"
#include "ops/scatter_kernel.h"

namespace tn::ops {

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
