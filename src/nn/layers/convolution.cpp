// Convolutions. Their weights have PyTorch's shapes, also with `channels_last`.
#include <array>

#include "ir/sizes.h"
#include "nn/layer_decls.h"
#include "nn/pad_spatial.h"
#include "ops/spatial.h"
#include "tenon/ops.h"

namespace tn::nn::layers {
namespace {

using ops::just;

enum class PaddingBy : uint8_t { given, same, valid };
constexpr std::string_view kPaddingBy[] = {"given", "same", "valid"};
constexpr ChoiceNames choice_names(PaddingBy) { return kPaddingBy; }

struct ConvAttrs {
  int64_t in_channels = 0, out_channels = 0;
  Ints kernel_size, stride = just(1), padding = just(0);
  PaddingBy padding_by = PaddingBy::given;
  Ints dilation = just(1);
  int64_t groups = 1;
  bool bias = true;
  PaddingMode padding_mode = PaddingMode::zeros;
  bool channels_last = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("in_channels", a.in_channels, required), f("out_channels", a.out_channels, required);
    f("kernel_size", a.kernel_size, required), f("stride", a.stride), f("padding", a.padding);
    f("padding_by", a.padding_by), f("dilation", a.dilation), f("groups", a.groups);
    f("bias", a.bias), f("padding_mode", a.padding_mode), f("channels_last", a.channels_last);
  }
};

struct ConvTransposeAttrs {
  int64_t in_channels = 0, out_channels = 0;
  Ints kernel_size, stride = just(1), padding = just(0), output_padding = just(0);
  int64_t groups = 1;
  bool bias = true;
  Ints dilation = just(1);
  bool channels_last = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("in_channels", a.in_channels, required), f("out_channels", a.out_channels, required);
    f("kernel_size", a.kernel_size, required), f("stride", a.stride), f("padding", a.padding);
    f("output_padding", a.output_padding), f("groups", a.groups), f("bias", a.bias);
    f("dilation", a.dilation), f("channels_last", a.channels_last);
  }
};

/// `kAxes`: 0, if they are as many as `kernel_size` has numbers.
template <int kAxes, class A>
void prepare_conv(A& a, std::string_view layer) {
  int axes = kAxes ? kAxes : a.kernel_size.size();
  if (axes > 3) fail("{}: kernel_size must be 1 to 3 integers, not {} of them", layer, axes);
  a.kernel_size = one_per_axis(layer, "kernel_size", a.kernel_size, axes);
  a.stride = one_per_axis(layer, "stride", a.stride, axes);
  a.padding = one_per_axis(layer, "padding", a.padding, axes, 0);
  a.dilation = one_per_axis(layer, "dilation", a.dilation, axes);
  if constexpr (requires { a.output_padding; })
    a.output_padding = one_per_axis(layer, "output_padding", a.output_padding, axes, 0);
}

/// Elements before and after each spatial axis, which `padding_mode` chooses.
Offsets sides_of(const ConvAttrs& a, const LayerCall& call) {
  Offsets spatial;
  for (int i = 0; i < a.kernel_size.size(); ++i) {
    int64_t both = a.padding_by == PaddingBy::valid ? 0 : 2 * a.padding[i];
    if (a.padding_by == PaddingBy::same) {
      if (a.stride[i] != 1) fail("{}: padding 'same' needs a stride of 1", call.layer);
      both = a.dilation[i] * (a.kernel_size[i] - 1);
    }
    spatial.push_back(both / 2), spatial.push_back(both - both / 2);
  }
  return spatial;
}

Tensor conv_forward(const ConvAttrs& a, const LayerCall& call) {
  constexpr decltype(&conv1d) kConvs[] = {conv1d, conv2d, conv3d};
  bool zeros = a.padding_mode == PaddingMode::zeros;
  PaddingBy by = zeros ? a.padding_by : PaddingBy::valid;
  Tensor x = call.in[0];
  if (!zeros) x = pad_spatial(x, {sides_of(a, call), a.padding_mode, a.channels_last});
  Tensor weight = a.channels_last ? moveaxis(call.held[0], 1, -1) : call.held[0];
  return kConvs[a.kernel_size.size() - 1](
      x, weight, call.held[1], a.stride, by == PaddingBy::given ? a.padding : Ints{0}, a.dilation,
      a.groups, a.channels_last, kPaddingBy[static_cast<size_t>(by)]);
}

Tensor conv_transpose_forward(const ConvTransposeAttrs& a, const LayerCall& call) {
  constexpr decltype(&conv_transpose1d) kConvs[] = {conv_transpose1d, conv_transpose2d,
                                                    conv_transpose3d};
  Tensor weight = call.held[0];
  if (a.channels_last)  // [out_channels, *kernel_size, in_channels / groups]
    weight = flatten(moveaxis(unflatten(weight, 0, Shape{a.groups, -1}), 1, -1), 0, 1);
  return kConvs[a.kernel_size.size() - 1](call.in[0], weight, call.held[1], a.stride, a.padding,
                                          a.output_padding, a.groups, a.dilation, a.channels_last);
}

/// The parameters in which convolutions of one kind differ.
struct ConvOf {
  std::string_view name, doc, example, base;
};

constexpr std::string_view kIn[] = {"batch in_channels ...", "batch in_channels length",
                                    "batch in_channels height width",
                                    "batch in_channels depth height width"};
constexpr std::string_view kOut[] = {"*", "batch out_channels _", "batch out_channels _ _",
                                     "batch out_channels _ _ _"};
constexpr std::string_view kKept[] = {"batch out_channels ...", "batch out_channels length",
                                      "batch out_channels height width",
                                      "batch out_channels depth height width"};

template <int kAxes>
constexpr LayerDef conv_layer(const ConvOf& of) {
  return Layer<ConvAttrs>{
      .name = of.name,
      .doc = of.doc,
      .example = of.example,
      .module = "convolution",
      .base = of.base,
      .shown = "{in_channels} -> {out_channels}, kernel_size={kernel_size}",
      .inferred = "in_channels",
      .keyword_only = "channels_last",
      .multiples = {{"in_channels", "groups", "in_group"}, {"out_channels", "groups", "out_group"}},
      .prepare = ops::rule<prepare_conv<kAxes, ConvAttrs>>,
      .tensors = {{"weight", "out_channels in_group kernel_size", by_inputs},
                  {"bias", "out_channels", by_inputs, "bias"}},
      .inputs = {{"x", kIn[kAxes]}},
      .output = kOut[kAxes],
      .result =
          [](const ConvAttrs& a) {
            bool moves = std::ranges::any_of(a.stride, [](int64_t step) { return step != 1; });
            return a.padding_by == PaddingBy::same && !moves ? kKept[kAxes] : kOut[kAxes];
          },
      .forward = ops::rule<conv_forward>,
  };
}

template <int kAxes>
constexpr LayerDef conv_transpose_layer(const ConvOf& of) {
  return Layer<ConvTransposeAttrs>{
      .name = of.name,
      .doc = of.doc,
      .example = of.example,
      .module = "convolution",
      .base = of.base,
      .shown = "{in_channels} -> {out_channels}, kernel_size={kernel_size}",
      .inferred = "in_channels",
      .keyword_only = "channels_last",
      .multiples = {{"in_channels", "groups", "in_group"}, {"out_channels", "groups", "out_group"}},
      .prepare = ops::rule<prepare_conv<kAxes, ConvTransposeAttrs>>,
      .tensors = {{"weight", "in_channels out_group kernel_size", by_inputs},
                  {"bias", "out_channels", by_inputs, "bias"}},
      .inputs = {{"x", kIn[kAxes]}},
      .output = kOut[kAxes],
      .forward = ops::rule<conv_transpose_forward>,
  };
}

}  // namespace

constinit const LayerDef Conv = conv_layer<0>({
    .name = "Conv",
    .doc = "Slides kernels over `x`, [batch, in_channels, spatial axes ...], without mirroring "
           "them.\n\n"
           "`kernel_size` has one number for each of the 1 to 3 spatial axes. `Conv1d`, `Conv2d` "
           "and `Conv3d` take one number for all too, as `stride`, `padding` and `dilation` may be "
           "here. `padding` may also be \"same\" or \"valid\"; what it puts around `x` is zeros, "
           "or by `padding_mode` \"reflect\", \"replicate\" (the edge) or \"circular\" what the "
           "layers of `nn.padding` put there. The weight is [out_channels, in_channels / groups, "
           "*kernel_size]; with `channels_last`, `x` is [batch, spatial axes ..., in_channels] and "
           "the weight is the same.",
    .example = R"(>>> tn.nn.Conv(3, 8, (5,))(tn.zeros((2, 3, 20))).shape
(2, 8, 16)
)",
    .base = "",
});

constinit const LayerDef Conv1d = conv_layer<1>({
    .name = "Conv1d",
    .doc = "`Conv` over [batch, in_channels, length].",
    .example = R"(>>> tn.nn.Conv1d(3, 8, 5, stride=2)(tn.zeros((2, 3, 20))).shape
(2, 8, 8)
)",
    .base = "Conv",
});

constinit const LayerDef Conv2d = conv_layer<2>({
    .name = "Conv2d",
    .doc = "`Conv` over [batch, in_channels, height, width].",
    .example = R"(>>> layer = tn.nn.Conv2d(3, 8, 5, padding=2)
>>> layer
Conv2d(3 -> 8, kernel_size=5, padding=2)
>>> layer(tn.zeros((2, 3, 16, 20))).shape
(2, 8, 16, 20)
)",
    .base = "Conv",
});

constinit const LayerDef Conv3d = conv_layer<3>({
    .name = "Conv3d",
    .doc = "`Conv` over [batch, in_channels, depth, height, width].",
    .example = R"(>>> tn.nn.Conv3d(3, 8, 3, padding="same")(tn.zeros((2, 3, 5, 6, 7))).shape
(2, 8, 5, 6, 7)
)",
    .base = "Conv",
});

constinit const LayerDef ConvTranspose = conv_transpose_layer<0>({
    .name = "ConvTranspose",
    .doc = "The adjoint of `Conv` in its input: it goes from that one's outputs to its inputs.\n\n"
           "An axis of n elements becomes one of (n - 1) * stride - 2 * padding + dilation * "
           "(kernel_size - 1) + 1 + output_padding. The weight is [in_channels, out_channels / "
           "groups, *kernel_size].",
    .example = R"(>>> tn.nn.ConvTranspose(3, 8, (5,))(tn.zeros((2, 3, 20))).shape
(2, 8, 24)
)",
    .base = "",
});

constinit const LayerDef ConvTranspose1d = conv_transpose_layer<1>({
    .name = "ConvTranspose1d",
    .doc = "`ConvTranspose` over [batch, in_channels, length].",
    .example =
        R"(>>> tn.nn.ConvTranspose1d(3, 8, 4, stride=2, padding=1)(tn.zeros((2, 3, 10))).shape
(2, 8, 20)
)",
    .base = "ConvTranspose",
});

constinit const LayerDef ConvTranspose2d = conv_transpose_layer<2>({
    .name = "ConvTranspose2d",
    .doc = "`ConvTranspose` over [batch, in_channels, height, width].",
    .example = R"(>>> tn.nn.ConvTranspose2d(3, 8, 2, stride=2)(tn.zeros((2, 3, 4, 5))).shape
(2, 8, 8, 10)
)",
    .base = "ConvTranspose",
});

constinit const LayerDef ConvTranspose3d = conv_transpose_layer<3>({
    .name = "ConvTranspose3d",
    .doc = "`ConvTranspose` over [batch, in_channels, depth, height, width].",
    .example = R"(>>> tn.nn.ConvTranspose3d(3, 8, 2, stride=2)(tn.zeros((2, 3, 4, 5, 6))).shape
(2, 8, 8, 10, 12)
)",
    .base = "ConvTranspose",
});

}  // namespace tn::nn::layers
