// Windows over the trailing axes: a view of overlapping parts, and its adjoint.
#include "base/error.h"
#include "ir/sizes.h"
#include "ops/families.h"
#include "ops/op_decls.h"
#include "ops/spatial.h"

namespace tn::ops {
namespace {

void check_axes(std::string_view op, int axes, int least_rank, const Type& x) {
  if (axes < 1 || axes > kMostAxes || x.rank() < least_rank)
    fail("{}: windows over {} trailing axes, of 1 to {}: {}", op, axes, kMostAxes, x);
}

void prepare_window(WindowAttrs& a, Tensors& in) {
  int axes = a.size.size();
  check_axes("window", axes, axes, *type_of(in[0]));
  a.size = for_each_axis("window", "size", a.size, axes, 1);
  a.step = for_each_axis("window", "step", a.step, axes, 1);
  a.dilation = for_each_axis("window", "dilation", a.dilation, axes, 1);
}

View view_windows(const WindowAttrs& a, const Type& x) {
  View view;
  view.kind = View::Kind::window, view.shape = x.shape;
  view.step = a.step, view.dilation = a.dilation;
  int axes = a.size.size(), front = x.rank() - axes;
  for (int k = 0; k < axes; ++k) {
    Dim places = window_count("window", spatial_extent("window", x, front + k),
                              dilated(a.size[k], a.dilation[k]), a.step[k]);
    view.shape[front + k] = places;
    view.shape.push_back(a.size[k]);
  }
  return view;
}

void prepare_fold(FoldAttrs& a, Tensors& in) {
  int axes = a.extents.size();
  check_axes("window_fold", axes, 2 * axes, *type_of(in[0]));
  check_kind("window_fold", numeric, in[0].dtype());
  for (Offset extent : a.extents)
    if (!decide_at_least(extent, 0) || decide_at_least(extent, kMostSpatial))
      fail("window_fold: extents must be 0 or more: {}", extent);
  a.step = for_each_axis("window_fold", "step", a.step, axes, 1);
  a.dilation = for_each_axis("window_fold", "dilation", a.dilation, axes, 1);
}

TypeList infer_fold(const FoldAttrs& a, Types in) {
  Type out = *in[0];
  int axes = a.extents.size(), front = out.rank() - 2 * axes;
  for (int k = 0; k < axes; ++k) {
    Dim places = out.shape[front + k], size = out.shape[front + axes + k];
    Dim wanted =
        window_count("window_fold", a.extents[k].size(), dilated(size, a.dilation[k]), a.step[k]);
    if (!decide_equal(places, wanted))
      fail("window_fold: {} elements have {} windows of {}, not {}: {}", a.extents[k], wanted, size,
           places, *in[0]);
  }
  for (int k = 0; k < axes; ++k) out.shape.erase(out.shape.rank() - 1);
  for (int k = 0; k < axes; ++k) out.shape[front + k] = a.extents[k].size();
  return out;
}

}  // namespace

constexpr auto window_def = Movement<WindowAttrs>{
    .doc =
        "The windows of `size` over the trailing axes (1 to 3, as many as `size` has numbers): "
        "[..., n] becomes [..., places, size], of several axes first all places, then all sizes. "
        "Windows begin `step` apart, their elements are `dilation` apart; elements behind the last "
        "whole window are left out.",
    .prepare = rule<prepare_window>,
    .view = rule<view_windows>,
    .adjoint =
        [](const WindowAttrs& a, const Tensor& ct, const Tensor& x) {
          FoldAttrs fold{{}, a.step, a.dilation};
          for (int k = x.rank() - a.size.size(); k < x.rank(); ++k)
            fold.extents.push_back(x.shape()[k]);
          return emit(window_fold, {ct}, fold);
        },
    .samples = {{"f32[7]", "size=[3]"},
                {"f32[2,6,7]", "size=[2,3], step=[2,1], dilation=[1,2]"},
                {"f32[2,4,3,5]", "size=[2,1,2], step=[2]"}},
};
TN_OP(window);

constexpr auto window_fold_def = Op<FoldAttrs>{
    .doc =
        "Adds windows where they came from: the adjoint of `window` of a tensor whose trailing "
        "axes have `extents`. Elements that no window covers are 0.",
    .args = {"x"},
    .prepare = rule<prepare_fold>,
    .infer = rule<infer_fold>,
    .linear = Linear::each,
    .adjoint =
        [](const FoldAttrs& a, const Tensor& ct, const Tensors& in, int) {
          WindowAttrs window_attrs{{}, a.step, a.dilation};
          for (int k = in[0].rank() - a.extents.size(); k < in[0].rank(); ++k)
            window_attrs.size.push_back(in[0].shape()[k].value());
          return emit(window, {ct}, window_attrs);
        },
    .batch = Batch::aligned,
    .samples = {{"f32[5,3]", "extents=[7]"},
                {"f32[2,3,3,2,3]", "extents=[6,7], step=[2,1], dilation=[1,2]"},
                {"f32[2,2,2,2,2,1,2]", "extents=[4,3,5], step=[2]"}},
};
TN_OP(window_fold);

}  // namespace tn::ops
