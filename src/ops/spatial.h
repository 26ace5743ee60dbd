#pragma once
// Attributes of ops on spatial axes (convolution, pooling): one number for all axes or one for
// each.
#include "ir/attrs.h"
#include "tenon/tensor.h"

namespace tn::ops {

/// A list of one number, as a default.
template <class List = Ints>
constexpr List just(int64_t value) {
  List list;
  list.count = 1, list.at[0] = value;
  return list;
}

/// Of `window`. When recorded: one number for each axis.
struct WindowAttrs {
  Ints size, step = just(1), dilation = just(1);
  static constexpr void fields(auto& a, auto&& f) {
    f("size", a.size, required), f("step", a.step), f("dilation", a.dilation);
  }
};

/// Of `window_fold`. When recorded: one number for each axis.
struct FoldAttrs {
  Offsets extents;
  Ints step = just(1), dilation = just(1);
  static constexpr void fields(auto& a, auto&& f) {
    f("extents", a.extents, required), f("step", a.step), f("dilation", a.dilation);
  }
};

inline constexpr int kMostAxes = 3;  // of windows

/// The windows of one tensor, always over three axes.
struct FoldPlan {
  int64_t places[kMostAxes] = {1, 1, 1}, size[kMostAxes] = {1, 1, 1};
  int64_t extent[kMostAxes] = {1, 1, 1}, step[kMostAxes] = {1, 1, 1}, apart[kMostAxes] = {1, 1, 1};
  FoldPlan(const FoldAttrs& a, const Shape& windows) {
    int axes = a.extents.size(), front = windows.rank() - 2 * axes;
    for (int i = 0; i < axes; ++i) {
      int k = kMostAxes - axes + i;
      places[k] = windows[front + i].value(), size[k] = windows[front + axes + i].value();
      extent[k] = a.extents[i].value(), step[k] = a.step[i], apart[k] = a.dilation[i];
    }
  }
};

/// Of `max_pool`.
struct MaxPoolAttrs {
  Ints kernel_size;
  Maybe<Ints> stride;
  Offsets padding = just<Offsets>(0);
  Ints dilation = just(1);
  bool channels_last = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("kernel_size", a.kernel_size, required), f("stride", a.stride), f("padding", a.padding);
    f("dilation", a.dilation), f("channels_last", a.channels_last);
  }
};

/// Numbers and extents stay below this, so that arithmetic on them does not overflow.
inline constexpr int64_t kMostSpatial = int64_t{1} << 31;

/// `given`, repeated for `axes` axes when it is one number. Numbers below `least` are refused.
Ints for_each_axis(std::string_view op, std::string_view name, const Ints& given, int axes,
                   int64_t least);
/// Padding as (before, after) of each axis: given is one number, one for each axis, or all.
Offsets for_each_side(std::string_view op, const Offsets& padding, int axes);

/// The extent of a spatial axis, below the limit.
Dim spatial_extent(std::string_view op, const Type& x, int axis);
/// The extent of `n` elements with `dilation - 1` zeros between them.
Dim dilated(Dim n, int64_t dilation);

/// How many windows of `size` elements, `step` apart, fit into `extent`; fails where none does.
Dim window_count(std::string_view op, Dim extent, Dim size, int64_t step);

/// `x`, [batch, spatial axes …, channels] when the channels are last, with the channels second; and
/// a result like that back in the layout of `x`.
Tensor channels_second(const Tensor& x, bool channels_last);
Tensor channels_back(const Tensor& y, bool channels_last);

}  // namespace tn::ops
