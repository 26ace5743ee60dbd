#include "ops/shapes.h"

#include <limits>

#include "base/error.h"
#include "ir/emit.h"
#include "ir/sizes.h"
#include "tenon/ops.h"

namespace tn::ops {

Shape without_axes(const Shape& shape, const Axes& axes, bool keepdims) {
  Shape out;
  for (int k = 0; k < shape.rank(); ++k) {
    if (!axes.has(k)) out.push_back(shape[k]);
    if (axes.has(k) && keepdims) out.push_back(1);
  }
  return out;
}

Shape with_extent(Shape shape, int axis, Dim extent) {
  shape[axis] = extent;
  return shape;
}

Dim extent_of(const Shape& shape, const Axes& axes) {
  Dim extent = 1;
  for (Axis a : axes) extent *= shape[a.i];
  return extent;
}

Shape with_leading_ones(const Shape& shape, int rank) {
  Shape out = Shape::filled(rank - shape.rank(), 1);
  for (Dim d : shape) out.push_back(d);
  return out;
}

std::optional<Dim> divided(Dim a, Dim b) {
  if (std::optional<Dim> exact = exact_div(a, b)) return exact;
  if (b.is(0) || !decide_divides(b, a)) return {};
  return floor_div(a, b);
}

Tensor value_of(Dim size, DType type) { return make_scalar(Scalar(Offset(size)), type, false); }

Tensor over_count(const Tensor& x, Dim count) {
  if (count.is_const()) return tn::divide(x, static_cast<double>(count.raw));
  return tn::divide(x, count);
}

Tensor share_of(double whole, Dim count, DType type) {
  if (count.is_const()) return make_scalar(whole / static_cast<double>(count.raw), type, false);
  return cast_to(tn::divide(make_scalar(whole, DType::f64, false), value_of(count, DType::f64)),
                 type);
}

void check_sizes(std::string_view op, const Shape& shape) {
  for (Dim extent : shape)
    if (extent.is_negative()) fail("{}: a size is negative: {}", op, extent);
}

void check_results(std::string_view op, int64_t count, const Type& x) {
  constexpr int64_t kMost = int64_t{1} << 18;
  if (count > kMost) fail("{}: {} results, the maximum is {} ({})", op, count, kMost, x);
}

int64_t span_of(const Shape& shape, int first, int last) {
  Dim span = 1;
  for (int k = first; k < last; ++k) span *= shape[k];
  return span.value();
}

Scalar least_of(DType type) {
  if (kind_of(type) == Kind::floating) return Scalar(-std::numeric_limits<double>::infinity());
  if (kind_of(type) != Kind::integer) return Scalar(0);
  return Scalar(static_cast<int64_t>(~uint64_t{0} << (8 * size_of(type) - 1)));
}

Scalar largest_of(DType type) {
  if (kind_of(type) == Kind::floating) return Scalar(std::numeric_limits<double>::infinity());
  if (kind_of(type) != Kind::integer && kind_of(type) != Kind::natural) return Scalar(1);
  uint64_t all = ~uint64_t{0} >> (64 - 8 * size_of(type));
  return Scalar(kind_of(type) == Kind::natural ? all : all >> 1);
}

Tensor filled(const Scalar& value, DType type, const Shape& shape) {
  return tn::broadcast_to(make_scalar(value, type, false), shape);
}

Tensor slice_axis(const Tensor& x, int axis, Offset start, Offset stop, int64_t step) {
  return tn::slice(x, Offsets(start), Offsets(stop), Ints(step), Axes(axis));
}

Tensor spaced(const Tensor& x, int axis, Dim start, Dim count, Dim step) {
  if (decide_equal(count, 0)) return slice_axis(x, axis, 0, 0);
  if (step.is_const()) return slice_axis(x, axis, start, start + (count - 1) * step + 1, step.raw);
  Tensor places = tn::add(tn::multiply(tn::iota({count}), step), start);
  return tn::gather(x, {places}, Axes(axis));
}

Tensor lines_along(const Tensor& x, const Axes& axes) {
  Perm perm;
  for (int k = 0; k < x.rank(); ++k)
    if (!axes.has(k)) perm.push_back(k);
  for (Axis k : axes) perm.push_back(k);
  Shape shape = without_axes(x.shape(), axes);
  shape.push_back(extent_of(x.shape(), axes));
  return tn::reshape(tn::permute_dims(x, perm), shape);
}

Tensor with_batch(const Tensor& x, Dim size) {
  Shape shape = x.shape();
  shape.insert(0, size);
  return tn::broadcast_to(x, shape);
}

Tensor with_batch(const BatchCall& call, size_t k) {
  return call.batched[k] ? call.in[k] : with_batch(call.in[k], call.size);
}

Tensor along_batch(const Tensor& values, int rank) {
  Shape shape = Shape::filled(rank, Dim(1));
  shape[0] = values.shape()[0];
  return tn::reshape(values, shape);
}

}  // namespace tn::ops
