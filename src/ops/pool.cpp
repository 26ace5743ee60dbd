// Pooling: windows over the spatial axes, folded.
#include <algorithm>

#include "base/error.h"
#include "ir/sizes.h"
#include "ops/families.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "ops/spatial.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

struct AvgPoolAttrs {
  Ints kernel_size;
  Maybe<Ints> stride;
  Offsets padding = just<Offsets>(0);
  bool count_include_pad = true, channels_last = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("kernel_size", a.kernel_size, required), f("stride", a.stride), f("padding", a.padding);
    f("count_include_pad", a.count_include_pad), f("channels_last", a.channels_last);
  }
};

/// Windows over x, [batch, channels, spatial axes …], with everything said for each axis.
struct Pool {
  int axes;
  Ints size, step;
  Offsets sides;
  Ints dilation;

  Pool(std::string_view op, const Type& x, const Ints& kernel_size, const Maybe<Ints>& stride,
       const Offsets& padding, const Ints& dilation_of)
      : axes(x.rank() - 2),
        size(for_each_axis(op, "kernel_size", kernel_size, axes, 1)),
        step(for_each_axis(op, "stride", stride ? *stride : size, axes, 1)),
        sides(for_each_side(op, padding, axes)),
        dilation(for_each_axis(op, "dilation", dilation_of, axes, 1)) {
    for (int i = 0; i < 2 * axes; ++i) {
      Dim reach = dilated(size[i / 2], dilation[i / 2]);
      if (!decide_at_least(sides[i], 0) || decide_at_least(sides[i], reach))
        fail("{}: padding must be at least 0 and smaller than the kernel: {} and {}", op, sides[i],
             reach);
    }
    for (int k = 0; k < axes; ++k)
      window_count(op, spatial_extent(op, x, k + 2) + sides[2 * k].size() + sides[2 * k + 1].size(),
                   dilated(size[k], dilation[k]), step[k]);
  }
  bool pads() const {
    return std::any_of(sides.begin(), sides.end(), [](Offset n) { return n != Offset(0); });
  }
  Tensor windows(const Tensor& x, const Scalar& around) const {
    Offsets widths{0, 0, 0, 0};
    for (Offset n : sides) widths.push_back(n);
    Tensor padded = pads() ? tn::pad(x, widths, "constant", around) : x;
    return emit(window, {padded}, WindowAttrs{size, step, dilation});
  }
  /// The axes of the elements in a window.
  Axes inside() const {
    Axes inside_axes;
    for (int k = 0; k < axes; ++k) inside_axes.push_back(2 + axes + k);
    return inside_axes;
  }
};

void check_rank(std::string_view op, const Tensor& x, bool channels_last) {
  if (x.rank() >= 3 && x.rank() <= 5) return;
  fail(
      "{}: x is {} with 1 to 3 spatial axes: {}", op,
      channels_last ? "[batch, spatial axes ..., channels]" : "[batch, channels, spatial axes ...]",
      *type_of(x));
}

Tensors max_pool_body(const MaxPoolAttrs& a, const Tensors& in) {
  Tensor x = channels_second(in[0], a.channels_last);
  Pool pool("max_pool", *type_of(x), a.kernel_size, a.stride, a.padding, a.dilation);
  Tensor y = tn::max(pool.windows(x, least_of(x.dtype())), pool.inside());
  return {channels_back(y, a.channels_last)};
}

Tensors avg_pool_body(const AvgPoolAttrs& a, const Tensors& in) {
  Tensor x = channels_second(cast_to(in[0], info(in[0].dtype()).compute), a.channels_last);
  Pool pool("avg_pool", *type_of(x), a.kernel_size, a.stride, a.padding, just(1));
  Tensor y = tn::sum(pool.windows(x, Scalar(0)), pool.inside());
  if (a.count_include_pad || !pool.pads()) {
    int64_t count = 1;
    for (int64_t n : pool.size) count *= n;
    y = y / static_cast<double>(count);
  } else {
    Shape one = x.shape();
    one[0] = one[1] = 1;
    y = y / tn::sum(pool.windows(filled(Scalar(1), x.dtype(), one), Scalar(0)), pool.inside());
  }
  return {cast_to(channels_back(y, a.channels_last), in[0].dtype())};
}

}  // namespace

constexpr auto max_pool_def = Composite<MaxPoolAttrs>{
    .doc =
        "Largest element of each window over the 1 to 3 spatial axes of `x`, [batch, channels, "
        "spatial axes ...]; NaN if any is NaN. `kernel_size`, `stride` (default: the kernel), "
        "`padding` and `dilation` are one number or one for each axis; `padding` may also give "
        "(before, after) for each axis, and never is the largest. With `channels_last` the layout "
        "is [batch, spatial axes ..., channels].",
    .args = {"x"},
    .recorded = true,
    .prepare =
        [](MaxPoolAttrs& a, Tensors& in) {
          check_kind("max_pool", reals, in[0].dtype());
          check_rank("max_pool", in[0], a.channels_last);
        },
    .body = rule<max_pool_body>,
    .samples = {{"f32[2,3,8]", "kernel_size=[2]"},
                {"f32[2,3,6,7]", "kernel_size=[3], stride=[2], padding=[1]"},
                {"f32[1,6,7,2]",
                 "kernel_size=[2,3], stride=[1], dilation=[2,1], channels_last=true"},
                {"f32[1,2,4,4,3]", "kernel_size=[2,2,1]"}},
};
TN_OP(max_pool);

constexpr auto avg_pool_def = Composite<AvgPoolAttrs>{
    .doc =
        "Mean of each window over the 1 to 3 spatial axes of `x`, [batch, channels, spatial axes "
        "...]. `padding` counts as zeros, unless `count_include_pad` is false: then it is left "
        "out. The other options are those of `max_pool`.",
    .args = {"x"},
    .recorded = true,
    .prepare =
        [](AvgPoolAttrs& a, Tensors& in) {
          promote_all(in, "avg_pool", floats, true);
          check_rank("avg_pool", in[0], a.channels_last);
        },
    .body = rule<avg_pool_body>,
    .samples = {{"f32[2,3,8]", "kernel_size=[2]"},
                {"f32[2,3,6,7]", "kernel_size=[3], stride=[2], padding=[1]"},
                {"f32[2,3,6,7]",
                 "kernel_size=[3,2], stride=[2], padding=[1,1,0,1], count_include_pad=false"},
                {"f32[1,4,4,3,2]", "kernel_size=[2,2,1], channels_last=true"}},
};
TN_OP(avg_pool);

}  // namespace tn::ops
