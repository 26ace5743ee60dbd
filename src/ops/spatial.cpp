#include "ops/spatial.h"

#include "base/error.h"
#include "ir/sizes.h"
#include "tenon/ops.h"

namespace tn::ops {

Ints for_each_axis(std::string_view op, std::string_view name, const Ints& given, int axes,
                   int64_t least) {
  if (given.size() != 1 && given.size() != axes)
    fail("{}: {} has {} numbers for {} spatial axes: give one, or one for each axis", op, name,
         given.size(), axes);
  Ints list;
  for (int k = 0; k < axes; ++k) {
    int64_t value = given[given.size() == 1 ? 0 : k];
    if (value < least || value >= kMostSpatial)
      fail("{}: {} must be {} or more: {}", op, name, least, value);
    list.push_back(value);
  }
  return list;
}

Offsets for_each_side(std::string_view op, const Offsets& padding, int axes) {
  int count = padding.size();
  if (count != 1 && count != axes && count != 2 * axes)
    fail(
        "{}: padding has {} numbers for {} spatial axes: give one, one for each axis, or before "
        "and after for each",
        op, count, axes);
  Offsets sides;
  for (int i = 0; i < 2 * axes; ++i) {
    Offset width = padding[count == 1 ? 0 : count == axes ? i / 2 : i];
    if (decide_at_least(-kMostSpatial, width) || decide_at_least(width, kMostSpatial))
      fail("{}: padding is too wide: {}", op, width);
    sides.push_back(width);
  }
  return sides;
}

Dim spatial_extent(std::string_view op, const Type& x, int axis) {
  Dim extent = x.shape[axis];
  if (decide_at_least(extent, kMostSpatial))
    unsupported({}, "{}: a spatial axis of size {}: {}", op, extent, x);
  return extent;
}

Dim dilated(Dim n, int64_t dilation) { return decide_equal(n, 0) ? 0 : (n - 1) * dilation + 1; }

Dim window_count(std::string_view op, Dim extent, Dim size, int64_t step) {
  if (!decide_at_least(extent, size))
    fail("{}: the kernel is larger than the padded input: {} and {} elements", op, size, extent);
  return floor_div(extent - size, step) + 1;
}

Tensor channels_second(const Tensor& x, bool channels_last) {
  return channels_last ? tn::moveaxis(x, Axes(-1), Axes(1)) : x;
}

Tensor channels_back(const Tensor& y, bool channels_last) {
  return channels_last ? tn::moveaxis(y, Axes(1), Axes(-1)) : y;
}

}  // namespace tn::ops
