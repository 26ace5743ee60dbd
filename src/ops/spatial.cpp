#include "ops/spatial.h"

#include "base/error.h"
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

Ints for_each_side(std::string_view op, const Ints& padding, int axes) {
  int count = padding.size();
  if (count != 1 && count != axes && count != 2 * axes)
    fail(
        "{}: padding has {} numbers for {} spatial axes: give one, one for each axis, or before "
        "and after for each",
        op, count, axes);
  Ints sides;
  for (int i = 0; i < 2 * axes; ++i) {
    int64_t width = padding[count == 1 ? 0 : count == axes ? i / 2 : i];
    if (width <= -kMostSpatial || width >= kMostSpatial)
      fail("{}: padding is too wide: {}", op, width);
    sides.push_back(width);
  }
  return sides;
}

int64_t spatial_extent(std::string_view op, const Type& x, int axis) {
  Dim extent = x.shape[axis];
  if (!extent.is_const() || extent.value() >= kMostSpatial)
    unsupported({}, "{}: a spatial axis of size {}: {}", op, extent, x);
  return extent.value();
}

int64_t window_count(std::string_view op, int64_t extent, int64_t size, int64_t step) {
  if (extent < size)
    fail("{}: the kernel is larger than the padded input: {} and {} elements", op, size, extent);
  return (extent - size) / step + 1;
}

Tensor channels_second(const Tensor& x, bool channels_last) {
  return channels_last ? tn::moveaxis(x, Axes(-1), Axes(1)) : x;
}

Tensor channels_back(const Tensor& y, bool channels_last) {
  return channels_last ? tn::moveaxis(y, Axes(1), Axes(-1)) : y;
}

}  // namespace tn::ops
