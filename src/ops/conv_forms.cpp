// Convolutions as users call them, in terms of the primitive `conv`.
#include <algorithm>

#include "base/error.h"
#include "ir/sizes.h"
#include "ops/conv_attrs.h"
#include "ops/families.h"
#include "ops/op_decls.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

struct ConvGeneralAttrs {
  Ints stride = just(1);
  Offsets padding = just<Offsets>(0);
  Ints kernel_dilation = just(1), input_dilation = just(1);
  int64_t groups = 1;
  bool flip = false, channels_last = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("stride", a.stride), f("padding", a.padding), f("kernel_dilation", a.kernel_dilation);
    f("input_dilation", a.input_dilation), f("groups", a.groups), f("flip", a.flip);
    f("channels_last", a.channels_last);
  }
};

enum class PaddingMode : uint8_t { given, same, valid };
constexpr std::string_view kPaddingModes[] = {"given", "same", "valid"};
constexpr ChoiceNames choice_names(PaddingMode) { return kPaddingModes; }

struct ConvLayerAttrs {
  Ints stride = just(1);
  Offsets padding = just<Offsets>(0);
  Ints dilation = just(1);
  int64_t groups = 1;
  bool channels_last = false;
  PaddingMode padding_mode = PaddingMode::given;
  static constexpr void fields(auto& a, auto&& f) {
    f("stride", a.stride), f("padding", a.padding), f("dilation", a.dilation);
    f("groups", a.groups), f("channels_last", a.channels_last);
    f("padding_mode", a.padding_mode);
  }
};

struct ConvTransposeAttrs {
  Ints stride = just(1);
  Offsets padding = just<Offsets>(0);
  Ints output_padding = just(0);
  int64_t groups = 1;
  Ints dilation = just(1);
  bool channels_last = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("stride", a.stride), f("padding", a.padding), f("output_padding", a.output_padding);
    f("groups", a.groups), f("dilation", a.dilation), f("channels_last", a.channels_last);
  }
};

enum class ConvolveMode : uint8_t { full, same, valid };
constexpr std::string_view kConvolveModes[] = {"full", "same", "valid"};
constexpr ChoiceNames choice_names(ConvolveMode) { return kConvolveModes; }

struct ConvolveAttrs {
  ConvolveMode mode = ConvolveMode::full;
  static constexpr void fields(auto& a, auto&& f) { f("mode", a.mode); }
};

/// Fails unless x and the kernel have `axes` spatial axes; says which layout is expected.
void check_ranks(std::string_view op, const Tensors& in, int axes, bool channels_last,
                 bool transposed) {
  if (in[0].rank() == axes + 2 && in[1].rank() == axes + 2) return;
  constexpr std::string_view kSpatial[] = {"length", "height, width", "depth, height, width"};
  constexpr std::string_view kKernel[] = {"k", "kh, kw", "kd, kh, kw"};
  std::string_view spatial = kSpatial[axes - 1], kernel = kKernel[axes - 1];
  const Type &x = *type_of(in[0]), &w = *type_of(in[1]);
  if (channels_last)
    fail(
        "{}: x is [batch, {}, channels], the weight [channels out, {}, channels / groups]: {} and "
        "{}",
        op, spatial, kernel, x, w);
  fail("{}: x is [batch, channels, {}], the weight [{}, {}]: {} and {}", op, spatial,
       transposed ? "channels, channels out / groups" : "channels out, channels / groups", kernel,
       x, w);
}

Axes kernel_axes(const Tensor& w, bool channels_last) {
  Axes axes;
  for (int k = 0; k + 2 < w.rank(); ++k) axes.push_back((channels_last ? 1 : 2) + k);
  return axes;
}

/// `conv` in the name of `op`, which has checked the ranks; the bias is added to each channel.
Tensor convolve_with(std::string_view op, ConvAttrs a, const Tensor& x, const Tensor& w,
                     const Tensor& bias = {}) {
  settle_conv(op, a, *type_of(x), *type_of(w));
  Tensor y = emit(conv, {x, w}, a);
  if (!bias.defined()) return y;
  Dim channels = w.shape()[0];
  if (!decide_equal(bias.shape(), Shape{channels}))
    fail("{}: bias must have the shape [{}], one for each channel: {}", op, channels,
         *type_of(bias));
  Shape along = Shape::filled(y.rank(), 1);
  along[a.channel_axis(y.rank())] = channels;
  return y + tn::reshape(bias, along);
}

/// Of results ceil(extent / stride); an odd element goes behind.
Offsets same_padding(std::string_view op, const ConvAttrs& a, const Type& x, const Type& w) {
  Offsets sides;
  for (int k = 0; k < a.stride.size(); ++k) {
    int axis = a.first_spatial() + k;
    Dim n = spatial_extent(op, x, axis);
    Dim kernel = dilated(spatial_extent(op, w, axis), a.kernel_dilation[k]);
    Offset last = Offset(ceil_div(n, a.stride[k]) * a.stride[k]) - a.stride[k];  // window begins
    Offset wanted = last + kernel - n;
    Dim total = decide_at_least(wanted, 0) ? wanted.size() : 0, half = floor_div(total, 2);
    sides.push_back(half), sides.push_back(total - half);
  }
  return sides;
}

Tensor bias_of(const Tensors& in) { return in.size() > 2 ? in[2] : Tensor(); }

Tensors conv_layer(std::string_view op, const ConvLayerAttrs& a, const Tensors& in, int axes) {
  ConvAttrs attrs{a.stride, a.padding, just(1), a.dilation, a.groups, a.channels_last};
  if (a.padding_mode != PaddingMode::given) attrs.padding = just<Offsets>(0);
  if (a.padding_mode == PaddingMode::same) {
    attrs.stride = for_each_axis(op, "stride", a.stride, axes, 1);
    attrs.kernel_dilation = for_each_axis(op, "dilation", a.dilation, axes, 1);
    attrs.padding = same_padding(op, attrs, *type_of(in[0]), *type_of(in[1]));
  }
  return {convolve_with(op, attrs, in[0], in[1], bias_of(in))};
}

/// The kernel [channels, channels out / groups, …] as the adjoint reads it: [channels out, channels
/// / groups, …].
Tensor exchange_channels(std::string_view op, const Tensor& w, int64_t groups) {
  Shape shape = w.shape();
  if (groups < 1 || !decide_divides(groups, shape[0]))
    fail("{}: {} groups do not divide the {} channels of the weight: {}", op, groups, shape[0],
         *type_of(w));
  Dim channels = floor_div(shape[0], groups), out = shape[1];
  shape[0] = channels;
  shape.insert(0, groups);
  Perm order{0, 2, 1};
  for (int k = 3; k < shape.rank(); ++k) order.push_back(k);
  Tensor moved = tn::permute_dims(tn::reshape(w, shape), order);
  shape.erase(0);
  shape[0] = out * groups, shape[1] = channels;
  return tn::reshape(moved, shape);
}

/// The adjoint of a convolution: x is dilated by its stride, the kernel mirrored.
Tensors conv_transpose(std::string_view op, const ConvTransposeAttrs& a, const Tensors& in,
                       int axes) {
  const Tensor& x = in[0];
  Tensor w = a.channels_last ? in[1] : exchange_channels(op, in[1], a.groups);
  ConvAttrs attrs{just(1), {}, a.stride, a.dilation, a.groups, a.channels_last};
  attrs.input_dilation = for_each_axis(op, "stride", a.stride, axes, 1);
  attrs.kernel_dilation = for_each_axis(op, "dilation", a.dilation, axes, 1);
  Offsets taken = for_each_side(op, a.padding, axes);
  Ints more = for_each_axis(op, "output_padding", a.output_padding, axes, 0);
  for (int k = 0; k < axes; ++k) {
    int64_t stride = attrs.input_dilation[k], dilation = attrs.kernel_dilation[k];
    if (more[k] >= std::max(stride, dilation))
      fail("{}: output_padding must be smaller than the stride or the dilation: {} ({} and {})", op,
           more[k], stride, dilation);
    int axis = attrs.first_spatial() + k;
    Offset reach = Offset(dilated(spatial_extent(op, *type_of(w), axis), dilation)) - 1;
    Offset results = reach + dilated(spatial_extent(op, *type_of(x), axis), stride) + more[k] -
                     taken[2 * k] - taken[2 * k + 1];
    if (!decide_at_least(results, 1))
      fail("{}: padding leaves no results along spatial axis {}: {} ({})", op, k, results,
           *type_of(x));
    attrs.padding.push_back(reach - taken[2 * k]);
    attrs.padding.push_back(reach - taken[2 * k + 1] + more[k]);
  }
  Tensor mirrored = tn::flip(w, kernel_axes(w, a.channels_last));
  return {convolve_with(op, attrs, x, mirrored, bias_of(in))};
}

void prepare_layer(std::string_view op, Tensors& in, int axes, bool channels_last,
                   bool transposed = false) {
  promote_all(in, op, numeric);
  check_ranks(op, in, axes, channels_last, transposed);
}

Tensors conv_general_body(const ConvGeneralAttrs& a, const Tensors& given) {
  Tensors in = given;
  int axes = std::clamp(in[0].rank() - 2, 1, 3);
  prepare_layer("conv_general", in, axes, a.channels_last);
  ConvAttrs attrs{a.stride,          a.padding, a.input_dilation,
                  a.kernel_dilation, a.groups,  a.channels_last};
  Tensor w = a.flip ? tn::flip(in[1], kernel_axes(in[1], a.channels_last)) : in[1];
  return {convolve_with("conv_general", attrs, in[0], w)};
}

Tensors convolve_body(const ConvolveAttrs& a, const Tensors& given) {
  Tensors in = given;
  promote_all(in, "convolve", numeric);
  const Type &x = *type_of(in[0]), &y = *type_of(in[1]);
  if (x.rank() != 1 || y.rank() != 1)
    fail("convolve: both operands have one axis: {} and {}", x, y);
  if (!decide_at_least(x.shape[0], y.shape[0])) std::swap(in[0], in[1]);
  Dim n = in[0].shape()[0], k = in[1].shape()[0];
  if (k.is(0)) fail("convolve: an operand is empty: {} and {}", x, y);
  Dim half = floor_div(k - 1, 2);
  Dim before = a.mode == ConvolveMode::full   ? k - 1
               : a.mode == ConvolveMode::same ? k - 1 - half
                                              : 0;
  ConvAttrs attrs;
  attrs.padding = Offsets{before, a.mode == ConvolveMode::same ? half : before};
  Tensor kernel = tn::reshape(tn::flip(in[1]), {1, 1, k});
  return {tn::reshape(convolve_with("convolve", attrs, tn::reshape(in[0], {1, 1, n}), kernel),
                      {Dim(-1)})};
}

}  // namespace

constexpr auto conv_general_def = Composite<ConvGeneralAttrs>{
    .doc =
        "Convolution over 1 to 3 spatial axes with every option: as `conv1d`, `conv2d` and "
        "`conv3d`, and `input_dilation` puts zeros between the elements of `x`; `flip` mirrors the "
        "kernel. Negative padding takes elements away.",
    .args = {"x", "weight"},
    .body = rule<conv_general_body>,
    .precision = Precision::low,
    .samples = {{"f32[2,3,6], f32[4,3,3]", "padding=[1]"},
                {"f32[2,4,5,6], f32[6,2,3,2]",
                 "stride=[2,1], padding=[1,0,2,1], input_dilation=[1,2], groups=2, flip=true"},
                {"f32[1,5,4,2], f32[3,2,3,2]", "kernel_dilation=[2,1], channels_last=true"}},
};
TN_OP(conv_general);

constexpr auto conv1d_def = Composite<ConvLayerAttrs>{
    .doc =
        "Slides kernels along `x`, [batch, channels, length], without mirroring them: `weight` is "
        "[channels out, channels / groups, k]. See `conv2d` for the options.",
    .args = {"x", "weight", "?bias"},
    .recorded = true,
    .prepare = [](ConvLayerAttrs& a,
                  Tensors& in) { prepare_layer("conv1d", in, 1, a.channels_last); },
    .body = [](const ConvLayerAttrs& a,
               const Tensors& in) { return conv_layer("conv1d", a, in, 1); },
    .precision = Precision::low,
    .samples = {{"f32[2,3,7], f32[4,3,3]", "stride=[2], padding=[1]"},
                {"f32[2,3,7], f32[4,3,3], f32[4]", "padding=[2,0], dilation=[2]"},
                {"f32[2,7,4], f32[6,3,2]", "groups=2, channels_last=true, padding_mode=same"}},
};
TN_OP(conv1d);

constexpr auto conv2d_def = Composite<ConvLayerAttrs>{
    .doc =
        "Slides kernels over `x`, [batch, channels, height, width], without mirroring them: "
        "`weight` is [channels out, channels / groups, kh, kw], `bias` has one number for each "
        "channel out. `stride` and `dilation` (the distance of taps) are one number or one for "
        "each axis, `padding` may also give (before, after) for each axis. With `padding_mode` "
        "`same` the result has ceil(extent / stride) elements along each axis, with `valid` "
        "nothing "
        "is padded. With `channels_last` the layout is [batch, height, width, channels] and "
        "[channels out, kh, kw, channels / groups].",
    .args = {"x", "weight", "?bias"},
    .recorded = true,
    .prepare = [](ConvLayerAttrs& a,
                  Tensors& in) { prepare_layer("conv2d", in, 2, a.channels_last); },
    .body = [](const ConvLayerAttrs& a,
               const Tensors& in) { return conv_layer("conv2d", a, in, 2); },
    .precision = Precision::low,
    .samples = {{"f32[2,3,5,6], f32[4,3,3,3]", "padding=[1]"},
                {"f32[2,4,5,6], f32[4,1,3,2], f32[4]", "stride=[2,1], padding=[1,0], groups=4"},
                {"f32[1,5,6,4], f32[2,3,3,4], f32[2]",
                 "stride=[2], dilation=[1,2], channels_last=true, padding_mode=same"}},
};
TN_OP(conv2d);

constexpr auto conv3d_def = Composite<ConvLayerAttrs>{
    .doc =
        "Slides kernels through `x`, [batch, channels, depth, height, width], without mirroring "
        "them: `weight` is [channels out, channels / groups, kd, kh, kw]. See `conv2d` for the "
        "options.",
    .args = {"x", "weight", "?bias"},
    .recorded = true,
    .prepare = [](ConvLayerAttrs& a,
                  Tensors& in) { prepare_layer("conv3d", in, 3, a.channels_last); },
    .body = [](const ConvLayerAttrs& a,
               const Tensors& in) { return conv_layer("conv3d", a, in, 3); },
    .precision = Precision::low,
    .samples = {{"f32[1,2,4,3,5], f32[3,2,2,2,3], f32[3]", "padding=[1,0,1]"},
                {"f32[2,3,4,5,2], f32[2,2,3,2,1]", "groups=2, channels_last=true"}},
};
TN_OP(conv3d);

constexpr auto conv_transpose1d_def = Composite<ConvTransposeAttrs>{
    .doc =
        "The adjoint of `conv1d` in its input: `x` is [batch, channels, length], `weight` is "
        "[channels, channels out / groups, k]. See `conv_transpose2d` for the options.",
    .args = {"x", "weight", "?bias"},
    .recorded = true,
    .prepare = [](ConvTransposeAttrs& a,
                  Tensors& in) { prepare_layer("conv_transpose1d", in, 1, a.channels_last, true); },
    .body = [](const ConvTransposeAttrs& a,
               const Tensors& in) { return conv_transpose("conv_transpose1d", a, in, 1); },
    .precision = Precision::low,
    .samples = {{"f32[2,4,5], f32[4,3,3]", "stride=[2], padding=[1], output_padding=[1]"},
                {"f32[2,4,5], f32[4,3,2], f32[6]", "dilation=[2], groups=2"},
                {"f32[2,5,4], f32[6,3,2]", "stride=[3], groups=2, channels_last=true"}},
};
TN_OP(conv_transpose1d);

constexpr auto conv_transpose2d_def = Composite<ConvTransposeAttrs>{
    .doc =
        "The adjoint of `conv2d` in its input, with the same `stride`, `padding` and `dilation`: "
        "`x` is [batch, channels, height, width], `weight` is [channels, channels out / groups, "
        "kh, kw]. The result has (extent - 1) * stride - 2 * padding + dilation * (k - 1) + 1 + "
        "output_padding elements along each axis: `output_padding` chooses among the extents that "
        "`conv2d` would map to that of `x`. With `channels_last` the layout is [batch, height, "
        "width, channels] and [channels out, kh, kw, channels / groups].",
    .args = {"x", "weight", "?bias"},
    .recorded = true,
    .prepare = [](ConvTransposeAttrs& a,
                  Tensors& in) { prepare_layer("conv_transpose2d", in, 2, a.channels_last, true); },
    .body = [](const ConvTransposeAttrs& a,
               const Tensors& in) { return conv_transpose("conv_transpose2d", a, in, 2); },
    .precision = Precision::low,
    .samples = {{"f32[2,3,4,3], f32[3,2,3,3]", "stride=[2], padding=[1], output_padding=[1,0]"},
                {"f32[1,4,3,3], f32[4,2,2,3], f32[4]", "dilation=[2,1], groups=2"},
                {"f32[1,3,2,4], f32[2,3,2,4]", "stride=[1,2], channels_last=true"}},
};
TN_OP(conv_transpose2d);

constexpr auto conv_transpose3d_def = Composite<ConvTransposeAttrs>{
    .doc =
        "The adjoint of `conv3d` in its input: `x` is [batch, channels, depth, height, width], "
        "`weight` is [channels, channels out / groups, kd, kh, kw]. See `conv_transpose2d` for the "
        "options.",
    .args = {"x", "weight", "?bias"},
    .recorded = true,
    .prepare = [](ConvTransposeAttrs& a,
                  Tensors& in) { prepare_layer("conv_transpose3d", in, 3, a.channels_last, true); },
    .body = [](const ConvTransposeAttrs& a,
               const Tensors& in) { return conv_transpose("conv_transpose3d", a, in, 3); },
    .precision = Precision::low,
    .samples = {{"f32[1,2,2,3,2], f32[2,3,2,2,3], f32[3]", "stride=[2], padding=[0,1,0]"},
                {"f32[1,2,2,3,4], f32[2,2,1,2,4]", "stride=[1,2,1], channels_last=true"}},
};
TN_OP(conv_transpose3d);

constexpr auto convolve_def = Composite<ConvolveAttrs>{
    .doc =
        "The sums of x1[i] * x2[k - i] for every k, of two lists: all of them (`full`), as many as "
        "the longer list has elements, from the middle (`same`), or those that use all of the "
        "shorter one (`valid`).",
    .args = {"x1", "x2"},
    .body = rule<convolve_body>,
    .precision = Precision::low,
    .samples = {{"f32[5], f32[3]"},
                {"f32[6], f32[4]", "mode=same"},
                {"f32[3], f32[6]", "mode=valid"}},
};
TN_OP(convolve);

}  // namespace tn::ops
