#pragma once
// Small shape helpers that the rules of several ops share.
#include "ir/node.h"

namespace tn::ops {

/// `shape` without `axes`; with keepdims they stay as extents of 1.
Shape without_axes(const Shape& shape, const Axes& axes, bool keepdims = false);
/// `shape` with the extent of `axis` replaced.
Shape with_extent(Shape shape, int axis, Dim extent);
/// The product of the extents of `axes`.
Dim extent_of(const Shape& shape, const Axes& axes);
/// `shape` with unit axes in front up to `rank`.
Shape with_leading_ones(const Shape& shape, int rank);
/// a / b if the division is exact, for all sizes or at least for the hinted ones.
std::optional<Dim> divided(Dim a, Dim b);
/// A size as a tensor of rank 0.
Tensor value_of(Dim size, DType type);
/// `x` divided by a count, which is a real constant where it is known.
Tensor over_count(const Tensor& x, Dim count);
/// What each of `count` gets of `whole`, as a tensor of rank 0.
Tensor share_of(double whole, Dim count, DType type);
/// Fails where a size of `shape` is -1, which some ops infer and most do not.
void check_sizes(std::string_view op, const Shape& shape);
/// Fails unless a call may have so many results.
void check_results(std::string_view op, int64_t count, const Type& x);
/// The product of extents [first, last); they must be constants.
int64_t span_of(const Shape& shape, int first, int last);

/// What no element of a type with an order is smaller than, or larger than.
Scalar least_of(DType type);
Scalar largest_of(DType type);
/// A tensor of one value everywhere.
Tensor filled(const Scalar& value, DType type, const Shape& shape);
/// `x` repeated along a new axis 0.
Tensor with_batch(const Tensor& x, Dim size);
/// Operand k of a batched call, repeated if it has no batch.
Tensor with_batch(const BatchCall& call, size_t k);
/// One value per example, with unit axes behind up to `rank`, as a batch of that rank is met.
Tensor along_batch(const Tensor& values, int rank);
/// Elements [start, stop) of one axis, all others whole.
Tensor slice_axis(const Tensor& x, int axis, Offset start, Offset stop, int64_t step = 1);

/// `count` elements of one axis, from `start` on and `step` apart.
Tensor spaced(const Tensor& x, int axis, Dim start, Dim count, Dim step);

/// `x` with all of `axes` as one last axis.
Tensor lines_along(const Tensor& x, const Axes& axes);

}  // namespace tn::ops
