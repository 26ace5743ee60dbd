// Layers that put elements around the spatial axes of [batch, channels, spatial axes …].
#include "ir/sizes.h"
#include "nn/layer_decls.h"
#include "nn/pad_spatial.h"
#include "tenon/ops.h"

namespace tn::nn {

Tensor pad_spatial(const Tensor& x, const SpatialPadding& padding) {
  constexpr std::string_view kModes[] = {"constant", "reflect", "edge", "wrap"};
  int after = padding.channels_last ? 1 : 0, axes = padding.sides.size() / 2;
  Offsets widths;
  for (int i = 0; i < x.rank() - axes - after; ++i) widths.push_back(0), widths.push_back(0);
  for (const Offset& side : padding.sides) {
    Dim extent = x.shape()[widths.size() / 2];
    if (padding.mode == PaddingMode::reflect && !decide_at_least(extent, Dim(side.value() + 1)))
      fail(Hint{"mode 'circular' or 'replicate' does not"},
           "pad: reflect needs more elements than it adds: {} to {}", side.value(), extent);
    widths.push_back(side);
  }
  if (padding.channels_last) widths.push_back(0), widths.push_back(0);
  return pad(x, widths, kModes[static_cast<size_t>(padding.mode)], padding.value);
}

namespace layers {
namespace {

struct PadAttrs {
  Ints padding;
  bool channels_last = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("padding", a.padding, required), f("channels_last", a.channels_last);
  }
};

struct ConstantPadAttrs {
  Ints padding;
  double value = 0;
  bool channels_last = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("padding", a.padding, required), f("value", a.value, required);
    f("channels_last", a.channels_last);
  }
};

template <int kAxes, class A>
void prepare_padding(A& a, std::string_view layer) {
  a.padding = one_per_axis(layer, "padding", a.padding, 2 * kAxes, 0);
}

/// PyTorch's order of sides is from the last axis on.
template <PaddingMode kMode, class A>
Tensor pad_forward(const A& a, const LayerCall& call) {
  SpatialPadding padding{.sides = {}, .mode = kMode, .channels_last = a.channels_last};
  for (int i = a.padding.size() - 2; i >= 0; i -= 2)
    padding.sides.push_back(a.padding[i]), padding.sides.push_back(a.padding[i + 1]);
  if constexpr (requires { a.value; }) padding.value = a.value;
  return pad_spatial(call.in[0], padding);
}

constexpr std::string_view kAround[] = {
    "channels length | batch channels length",
    "channels height width | batch channels height width",
    "channels depth height width | batch channels depth height width"};

struct PadOf {
  std::string_view name, doc, example;
};

template <int kAxes, PaddingMode kMode, class A = PadAttrs>
constexpr LayerDef pad_layer(const PadOf& of) {
  return Layer<A>{
      .name = of.name,
      .doc = of.doc,
      .example = of.example,
      .module = "padding",
      .shown = "{padding}",
      .keyword_only = "channels_last",
      .prepare = ops::rule<prepare_padding<kAxes, A>>,
      .inputs = {{"x", kAround[kAxes - 1]}},
      .output = "*",
      .forward = ops::rule<pad_forward<kMode, A>>,
  };
}

}  // namespace

constinit const LayerDef CircularPad1d = pad_layer<1, PaddingMode::circular>({
    .name = "CircularPad1d",
    .doc = "[batch, channels, length] with the elements of the other end around it.",
    .example = ">>> tn.nn.CircularPad1d(1)(tn.zeros((2, 3, 4))).shape\n(2, 3, 6)\n",
});

constinit const LayerDef CircularPad2d = pad_layer<2, PaddingMode::circular>({
    .name = "CircularPad2d",
    .doc = "[batch, channels, height, width] with the elements of the other end around it.",
    .example = ">>> tn.nn.CircularPad2d(1)(tn.zeros((2, 3, 4, 5))).shape\n(2, 3, 6, 7)\n",
});

constinit const LayerDef CircularPad3d = pad_layer<3, PaddingMode::circular>({
    .name = "CircularPad3d",
    .doc = "[batch, channels, depth, height, width] with the elements of the other end around it.",
    .example = ">>> tn.nn.CircularPad3d(1)(tn.zeros((2, 3, 4, 5, 6))).shape\n(2, 3, 6, 7, 8)\n",
});

constinit const LayerDef ConstantPad1d = pad_layer<1, PaddingMode::zeros, ConstantPadAttrs>({
    .name = "ConstantPad1d",
    .doc = "[batch, channels, length] with the constant `value` around it.",
    .example = ">>> tn.nn.ConstantPad1d(1, 0.5)(tn.zeros((2, 3, 4))).shape\n(2, 3, 6)\n",
});

constinit const LayerDef ConstantPad2d = pad_layer<2, PaddingMode::zeros, ConstantPadAttrs>({
    .name = "ConstantPad2d",
    .doc = "[batch, channels, height, width] with the constant `value` around it.",
    .example = ">>> tn.nn.ConstantPad2d(1, 0.5)(tn.zeros((2, 3, 4, 5))).shape\n(2, 3, 6, 7)\n",
});

constinit const LayerDef ConstantPad3d = pad_layer<3, PaddingMode::zeros, ConstantPadAttrs>({
    .name = "ConstantPad3d",
    .doc = "[batch, channels, depth, height, width] with the constant `value` around it.",
    .example =
        ">>> tn.nn.ConstantPad3d(1, 0.5)(tn.zeros((2, 3, 4, 5, 6))).shape\n(2, 3, 6, 7, 8)\n",
});

constinit const LayerDef ReflectionPad1d = pad_layer<1, PaddingMode::reflect>({
    .name = "ReflectionPad1d",
    .doc = "[batch, channels, length] with the elements mirrored around it.",
    .example = ">>> tn.nn.ReflectionPad1d(1)(tn.zeros((2, 3, 4))).shape\n(2, 3, 6)\n",
});

constinit const LayerDef ReflectionPad2d = pad_layer<2, PaddingMode::reflect>({
    .name = "ReflectionPad2d",
    .doc = "[batch, channels, height, width] with the elements mirrored around it.",
    .example = ">>> tn.nn.ReflectionPad2d(1)(tn.zeros((2, 3, 4, 5))).shape\n(2, 3, 6, 7)\n",
});

constinit const LayerDef ReflectionPad3d = pad_layer<3, PaddingMode::reflect>({
    .name = "ReflectionPad3d",
    .doc = "[batch, channels, depth, height, width] with the elements mirrored around it.",
    .example = ">>> tn.nn.ReflectionPad3d(1)(tn.zeros((2, 3, 4, 5, 6))).shape\n(2, 3, 6, 7, 8)\n",
});

constinit const LayerDef ReplicationPad1d = pad_layer<1, PaddingMode::replicate>({
    .name = "ReplicationPad1d",
    .doc = "[batch, channels, length] with the elements at the edge around it.",
    .example = ">>> tn.nn.ReplicationPad1d(1)(tn.zeros((2, 3, 4))).shape\n(2, 3, 6)\n",
});

constinit const LayerDef ReplicationPad2d = pad_layer<2, PaddingMode::replicate>({
    .name = "ReplicationPad2d",
    .doc = "[batch, channels, height, width] with the elements at the edge around it.",
    .example = ">>> tn.nn.ReplicationPad2d(1)(tn.zeros((2, 3, 4, 5))).shape\n(2, 3, 6, 7)\n",
});

constinit const LayerDef ReplicationPad3d = pad_layer<3, PaddingMode::replicate>({
    .name = "ReplicationPad3d",
    .doc = "[batch, channels, depth, height, width] with the elements at the edge around it.",
    .example = ">>> tn.nn.ReplicationPad3d(1)(tn.zeros((2, 3, 4, 5, 6))).shape\n(2, 3, 6, 7, 8)\n",
});

constinit const LayerDef ZeroPad1d = pad_layer<1, PaddingMode::zeros>({
    .name = "ZeroPad1d",
    .doc = "[batch, channels, length] with zeros around it.",
    .example = ">>> tn.nn.ZeroPad1d(1)(tn.zeros((2, 3, 4))).shape\n(2, 3, 6)\n",
});

constinit const LayerDef ZeroPad2d = pad_layer<2, PaddingMode::zeros>({
    .name = "ZeroPad2d",
    .doc = "[batch, channels, height, width] with zeros around it.",
    .example = ">>> tn.nn.ZeroPad2d(1)(tn.zeros((2, 3, 4, 5))).shape\n(2, 3, 6, 7)\n",
});

constinit const LayerDef ZeroPad3d = pad_layer<3, PaddingMode::zeros>({
    .name = "ZeroPad3d",
    .doc = "[batch, channels, depth, height, width] with zeros around it.",
    .example = ">>> tn.nn.ZeroPad3d(1)(tn.zeros((2, 3, 4, 5, 6))).shape\n(2, 3, 6, 7, 8)\n",
});

}  // namespace layers
}  // namespace tn::nn
