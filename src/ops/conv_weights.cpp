// The adjoint of a convolution in its weights.
#include "base/error.h"
#include "ir/sizes.h"
#include "ops/conv_attrs.h"
#include "ops/families.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/ops.h"

namespace tn::ops {
namespace {

/// The type of the weights.
Type infer_weights(const ConvWeightsAttrs& a, Types in) {
  const Type &x = *in[0], &ct = *in[1];
  ConvAttrs attrs = a.conv();
  if (x.rank() < 3 || ct.rank() != x.rank() || a.kernel.size() != x.rank() - 2)
    fail("conv_weights: a kernel of {} axes for {} and {}", a.kernel.size(), x, ct);
  int channel = attrs.channel_axis(x.rank());
  Type w = x;
  w.shape[0] = ct.shape[channel];
  w.shape[channel] = floor_div(x.shape[channel], a.groups);
  for (int k = 0; k < a.kernel.size(); ++k) w.shape[attrs.first_spatial() + k] = a.kernel[k].size();
  if (Type made = settle_conv("conv_weights", attrs, x, w);
      made.dtype != ct.dtype || !decide_equal(made.shape, ct.shape))
    fail("conv_weights: a convolution of {} with {} gives {}, not {}", x, w, made, ct);
  return w;
}

void prepare_weights(ConvWeightsAttrs& a, Tensors& in) {
  promote_all(in, "conv_weights", numeric);
  int axes = in[0].rank() - 2;
  a.stride = for_each_axis("conv_weights", "stride", a.stride, axes, 1);
  a.padding = for_each_side("conv_weights", a.padding, axes);
  a.input_dilation = for_each_axis("conv_weights", "input dilation", a.input_dilation, axes, 1);
  a.kernel_dilation = for_each_axis("conv_weights", "dilation", a.kernel_dilation, axes, 1);
  if (a.kernel.size() == 1)
    while (a.kernel.size() < axes) a.kernel.push_back(a.kernel[0]);
}

Tensor adjoint_weights(const ConvWeightsAttrs& a, const Tensor& ct, const Tensors& in, int k) {
  if (k == 0) return conv_adjoint_in_x(a.conv(), in[1], in[0], ct);
  return emit(conv, {in[0], ct}, a.conv());
}

/// A batch goes to the groups.
Tensors batch_weights(const ConvWeightsAttrs& a, const BatchCall& call) {
  ConvWeightsAttrs attrs = a;
  attrs.groups *= call.size.value();
  auto merged = [&](size_t k) {
    int channel = a.conv().channel_axis(with_batch(call, k).rank() - 1);
    Tensor moved = tn::moveaxis(with_batch(call, k), Axes(0), Axes(channel));
    Shape shape = moved.shape();
    shape[channel] *= shape[channel + 1];
    shape.erase(channel + 1);
    return tn::reshape(moved, shape);
  };
  Tensor made = emit(conv_weights, {merged(0), merged(1)}, attrs);
  Shape shape = made.shape();
  shape[0] = floor_div(shape[0], call.size);
  shape.insert(0, call.size);
  return {tn::reshape(made, shape)};
}

}  // namespace

Tensor conv_adjoint_in_w(const ConvAttrs& a, const Tensor& ct, const Tensor& x, const Tensor& w) {
  ConvWeightsAttrs attrs{a.stride,        a.padding, a.input_dilation, a.kernel_dilation, a.groups,
                         a.channels_last, {}};
  for (int k = 0; k + 2 < w.rank(); ++k) attrs.kernel.push_back(w.shape()[a.first_spatial() + k]);
  return emit(conv_weights, {x, ct}, attrs);
}

constexpr auto conv_weights_def = Op<ConvWeightsAttrs>{
    .doc =
        "The adjoint of `conv` in its weights, whose kernel axes have the extents `kernel`: the "
        "sums of `x` times `ct`, a cotangent of the result, over the batch and over all places "
        "that meet at a tap.",
    .args = {"x", "ct"},
    .surface = false,
    .prepare = rule<prepare_weights>,
    .infer = rule<infer_weights>,
    .linear = Linear::each,
    .adjoint = rule<adjoint_weights>,
    .precision = Precision::low,
    .batch_rule = rule<batch_weights>,
    .samples = {{"f32[2,3,6], f32[2,4,4]", "kernel=[3]"},
                {"f32[2,4,5,6], f32[2,6,2,9]",
                 "stride=[2,1], padding=[0,0,2,2], groups=2, kernel=[3,2]"},
                {"f32[1,2,4,5], f32[1,3,4,5]",
                 "padding=[1,1], input_dilation=[1,1], kernel_dilation=[2,1], kernel=[2,3]"},
                {"f32[2,5,6,4], f32[2,5,6,4]",
                 "padding=[1], groups=4, channels_last=true, kernel=[3,3]"}},
};
TN_OP(conv_weights);

}  // namespace tn::ops
