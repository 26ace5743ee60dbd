#pragma once
// Writing a row-major tensor at computed places.
#include <vector>

#include "ops/indexing.h"

namespace tn::cpu {

/// Element (b, i, m, r) of what is written lies at b*outer_stride + points(b)[i] +
/// middle[m] + r.
struct ScatterPlan {
  int64_t outer = 1, outer_stride = 0;  // axes before the first indexed one
  int64_t batches = 1;                  // of the outer ones: each has index points of its own
  std::vector<int64_t> indexed;         // one offset per index point, -1 where it is dropped
  std::vector<int64_t> middle;          // of the axes between indexed ones
  int64_t run = 1;                      // elements after the last indexed axis, side by side

  int64_t count() const {  // of the points of a batch
    return batches ? static_cast<int64_t>(indexed.size()) / batches : 0;
  }
  std::span<const int64_t> points(int64_t b) const {
    int64_t batch = b / (outer / batches);
    return {indexed.data() + batch * count(), static_cast<size_t>(count())};
  }
};

/// The indices of `types` broadcast to `points`; the first `batch_dims` axes of both are paired.
/// Throws OutOfBounds where `outside` says so and this thread checks indices.
ScatterPlan plan_scatter(const Type& x, const Axes& axes, int64_t batch_dims, const Shape& points,
                         Types types, const void* const* indices, ops::OutOfRange outside);

/// Throws OutOfBounds where an index lies outside of its axis and this thread checks indices.
void check_indices(const Type& x, const Axes& axes, int64_t batch_dims, const Shape& points,
                   Types types, const void* const* indices);

/// Combines `updates` into `out`, in order.
void scatter_into(const ScatterPlan& plan, DType type, ops::ScatterMode mode, const void* updates,
                  void* out);

/// A block of a tensor: per axis the first element, the step and (in `shape`) the count.
struct Block {
  Shape shape;
  Ints start, step;
};
/// Writes row-major `from` to the elements of `block` in `out`.
void write_block(const Type& x, const Block& block, const void* from, void* out);

}  // namespace tn::cpu
