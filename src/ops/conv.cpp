// The convolution primitive. Its adjoints are convolutions again: of the cotangent with the kernel
// mirrored, and of x with the cotangent.
#include "base/error.h"
#include "ir/sizes.h"
#include "ops/conv_attrs.h"
#include "ops/families.h"
#include "ops/op_decls.h"
#include "ops/runtime_types.h"
#include "ops/shapes.h"
#include "tenon/ops.h"

namespace tn::ops {
namespace {

void check_channels(std::string_view op, const ConvAttrs& a, const Type& x, const Type& w) {
  int axis = a.channel_axis(x.rank());
  Dim channels = x.shape[axis], out = w.shape[0];
  if (a.groups < 1) fail("{}: groups must be 1 or more: {}", op, a.groups);
  if (!decide_divides(a.groups, channels) || !decide_divides(a.groups, out))
    fail("{}: {} groups do not divide {} channels into {}: {} and {}", op, a.groups, channels, out,
         x, w);
  if (!decide_equal(w.shape[axis] * a.groups, channels))
    fail("{}: x has {} channels, the kernel takes {} in {} groups: {} and {}", op, channels,
         w.shape[axis], a.groups, x, w);
}

void prepare_conv(ConvAttrs& a, Tensors& in) {
  promote_all(in, "conv", numeric);
  settle_conv("conv", a, *type_of(in[0]), *type_of(in[1]));
}

TypeList infer_conv(const ConvAttrs& a, Types in) {
  ConvAttrs settled = a;
  return settle_conv("conv", settled, *in[0], *in[1]);
}

Axes spatial_axes(const ConvAttrs& a, const Tensor& x) {
  Axes axes;
  for (int k = 0; k + 2 < x.rank(); ++k) axes.push_back(a.first_spatial() + k);
  return axes;
}

/// Axes i and j change places.
Tensor exchanged(const Tensor& x, int i, int j) {
  Perm order;
  for (int k = 0; k < x.rank(); ++k) order.push_back(k == i ? j : k == j ? i : k);
  return tn::permute_dims(x, order);
}
/// The first axes in another order, the others stay.
Tensor reordered(const Tensor& x, Perm order) {
  for (int k = order.size(); k < x.rank(); ++k) order.push_back(k);
  return tn::permute_dims(x, order);
}

/// Axis `axis` as `count` parts of `each`, or with the one after it as one axis.
Tensor split_axis(const Tensor& x, int axis, Dim count, Dim each) {
  Shape shape = x.shape();
  shape[axis] = each;
  shape.insert(axis, count);
  return tn::reshape(x, shape);
}
Tensor merge_axes(const Tensor& x, int axis) {
  Shape shape = x.shape();
  shape[axis] *= shape[axis + 1];
  shape.erase(axis + 1);
  return tn::reshape(x, shape);
}

Tensor adjoint_conv(const ConvAttrs& a, const Tensor& ct, const Tensors& in, int k) {
  return k == 0 ? conv_adjoint_in_x(a, ct, in[0], in[1]) : conv_adjoint_in_w(a, ct, in[0], in[1]);
}

/// The result on a batch of none.
Tensor no_examples(ConvAttrs a, const BatchCall& call) {
  Type types[2];
  for (size_t k = 0; k < 2; ++k) {
    types[k] = *type_of(call.in[k]);
    if (call.batched[k]) types[k].shape.erase(0);
  }
  Shape shape = settle_conv("conv", a, types[0], types[1]).shape;
  shape.insert(0, 0);
  return filled(Scalar(0), types[0].dtype, shape);
}

/// A batch of x goes to the images, one of kernels to the channels out, of both to the groups.
Tensors batch_conv(const ConvAttrs& a, const BatchCall& call) {
  Tensor x = call.in[0], w = call.in[1];
  if (call.size.is(0)) return {no_examples(a, call)};
  ConvAttrs attrs = a;
  Dim images = x.shape()[call.batched[0] ? 1 : 0], out = w.shape()[call.batched[1] ? 1 : 0];
  if (!call.batched[1])
    return {split_axis(emit(conv, {merge_axes(x, 0), w}, attrs), 0, call.size, images)};
  int rank = w.rank() - 1, channel = a.channel_axis(rank);
  if (!call.batched[0]) {
    Dim each = floor_div(out, a.groups);
    w = reordered(split_axis(w, 1, a.groups, each), Perm{1, 0, 2});  // groups, batch, channels
    Tensor y = emit(conv, {x, merge_axes(merge_axes(w, 0), 0)}, attrs);
    y = split_axis(split_axis(y, channel, a.groups, call.size * each), channel + 1, call.size,
                   each);
    return {merge_axes(tn::moveaxis(y, Axes(channel + 1), Axes(0)), channel + 1)};
  }
  attrs.groups *= call.size.value();
  x = merge_axes(tn::moveaxis(x, Axes(0), Axes(channel)), channel);
  Tensor y = split_axis(emit(conv, {x, merge_axes(w, 0)}, attrs), channel, call.size, out);
  return {tn::moveaxis(y, Axes(channel), Axes(0))};
}

}  // namespace

ConvShape conv_shape(const ConvAttrs& a, const Type& x, const Type& w, const Type& out) {
  ConvShape shape;
  shape.type = element_of(out.dtype);
  shape.batch = x.shape[0].value(), shape.groups = a.groups;
  shape.in_channels = w.shape[a.channel_axis(w.rank())].value();
  shape.out_channels = w.shape[0].value() / a.groups;
  int axes = x.rank() - 2;
  for (int k = 0; k < axes; ++k) {
    int axis = a.first_spatial() + k;
    shape.axes[3 - axes + k] = {
        x.shape[axis].value(),    w.shape[axis].value(), out.shape[axis].value(), a.stride[k],
        a.padding[2 * k].value(), a.input_dilation[k],   a.kernel_dilation[k]};
  }
  shape.x_last = shape.w_last = shape.out_last = a.channels_last;
  return shape;
}

/// Strides and input dilation change places, the kernel is mirrored and its channels exchanged.
Tensor conv_adjoint_in_x(const ConvAttrs& a, const Tensor& ct, const Tensor& x, const Tensor& w) {
  ConvAttrs back{a.input_dilation, {}, a.stride, a.kernel_dilation, a.groups, a.channels_last};
  for (int k = 0; k + 2 < x.rank(); ++k) {
    int axis = a.first_spatial() + k;
    Dim in = x.shape()[axis], out = ct.shape()[axis];
    if (in.is(0)) return filled(Scalar(0), x.dtype(), x.shape());
    Offset reach = (w.shape()[axis] - 1) * a.kernel_dilation[k];
    Offset rest = Offset((in - 1) * a.input_dilation[k]) - (out - 1) * a.stride[k];
    back.padding.push_back(reach - a.padding[2 * k]);
    back.padding.push_back(rest + a.padding[2 * k]);
  }
  Tensor mirrored =
      split_axis(tn::flip(w, spatial_axes(a, w)), 0, a.groups, floor_div(w.shape()[0], a.groups));
  mirrored = merge_axes(exchanged(mirrored, 1, 1 + a.channel_axis(w.rank())), 0);
  return emit(conv, {ct, mirrored}, back);
}

Type settle_conv(std::string_view op, ConvAttrs& a, const Type& x, const Type& w) {
  int axes = x.rank() - 2;
  if (axes < 1 || axes > 3 || w.rank() != x.rank())
    fail(
        "{}: x is [batch, channels, 1 to 3 spatial axes], the kernel [channels out, channels / "
        "groups, as many axes]: {} and {}",
        op, x, w);
  if (x.dtype != w.dtype)
    fail(Fault::type, "{}: operands have different element types: {} and {}", op, x, w);
  check_channels(op, a, x, w);
  a.stride = for_each_axis(op, "stride", a.stride, axes, 1);
  a.padding = for_each_side(op, a.padding, axes);
  a.input_dilation = for_each_axis(op, "input dilation", a.input_dilation, axes, 1);
  a.kernel_dilation = for_each_axis(op, "dilation", a.kernel_dilation, axes, 1);
  Type out = x;
  out.shape[a.channel_axis(x.rank())] = w.shape[0];
  for (int k = 0; k < axes; ++k) {
    int axis = a.first_spatial() + k;
    Dim in = dilated(spatial_extent(op, x, axis), a.input_dilation[k]);
    Dim kernel = dilated(spatial_extent(op, w, axis), a.kernel_dilation[k]);
    Offset padded = Offset(in) + a.padding[2 * k] + a.padding[2 * k + 1];
    if (kernel.is(0)) fail("{}: the kernel is empty: {}", op, w);
    if (!decide_at_least(padded, kernel))
      fail("{}: the kernel is larger than the padded input: {} and {} along axis {} ({} and {})",
           op, kernel, padded, axis, w, x);
    out.shape[axis] = floor_div((padded - kernel).size(), a.stride[k]) + 1;
  }
  return out;
}

constexpr auto conv_def = Op<ConvAttrs>{
    .doc =
        "Slides kernels over `x`, [batch, channels, spatial axes ...], without mirroring them: "
        "`w` is [channels out, channels / groups, kernel axes ...]. `padding` is one number, one "
        "for each "
        "axis, or (before, after) for each axis; negative padding takes elements away. Dilation "
        "puts zeros between elements. Channels are split into `groups`, each with its own part of "
        "the kernels. With `channels_last` `x` is [batch, spatial axes ..., channels], `w` "
        "[channels "
        "out, kernel axes ..., channels / groups]. float16 and bfloat16 are summed in float32 and "
        "rounded once, integers wrap.",
    .args = {"x", "w"},
    .prepare = rule<prepare_conv>,
    .infer = rule<infer_conv>,
    .linear = Linear::each,
    .adjoint = rule<adjoint_conv>,
    .precision = Precision::low,
    .batch_rule = rule<batch_conv>,
    .samples = {{"f32[2,3,6], f32[4,3,3]"},
                {"f32[2,4,5,6], f32[6,2,3,2]", "stride=[2,1], padding=[1,0,2,1], groups=2"},
                {"f32[1,2,4,5], f32[3,2,2,3]",
                 "stride=[3,2], padding=[2,1], input_dilation=[2,3], kernel_dilation=[2,1]"},
                {"f32[2,2,4,3,5], f32[2,1,2,2,2]", "padding=[1,1,0,0,-1,1], groups=2"},
                {"f32[2,3,4,4], f32[5,3,1,1]"},
                {"f32[2,5,6,4], f32[6,3,2,2]",
                 "stride=[2,1], padding=[1,0,2,1], groups=2, channels_last=true"}},
};
TN_OP(conv);

}  // namespace tn::ops
