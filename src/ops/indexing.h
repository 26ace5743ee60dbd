#pragma once
// What reading (gather) and writing (scatter) by index tensors share.
#include "ir/node.h"

namespace tn::ops {

/// Checks the index tensors in[first], … against `axes` of in[0] and sorts both by axis.
void sort_indices(std::string_view op, Axes& axes, Tensors& in, size_t first);
/// The shape to which the index types broadcast.
Shape index_shape(std::string_view op, Types indices);
/// The shape of x[indices]: the index axes in the place of the first indexed axis, the rest after.
/// Fails when there is something to find along an axis without elements.
Shape indexed_shape(std::string_view op, const Type& x, const Axes& axes, const Shape& indices);

/// Negative indices count from the end of an axis of `extent`.
Tensor wrap_negative(const Tensor& indices, Dim extent);
/// 0, 1, … along `axis` of a shape of `rank` axes, all others of extent 1.
Tensor positions(Dim extent, int rank, int axis);
/// One index tensor per axis of `shape`: `indices` for `axis`, the own position for the others.
Tensors along_axis(const Tensor& indices, int axis);

}  // namespace tn::ops
