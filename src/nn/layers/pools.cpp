// Pools over the spatial axes of [batch, channels, spatial axes …], and layers that move elements
// between channels and space.
#include "nn/layer_decls.h"
#include "ops/spatial.h"
#include "tenon/ops.h"

namespace tn::nn::layers {
namespace {

using ops::just;

struct MaxPoolAttrs {
  Ints kernel_size;
  Maybe<Ints> stride;
  Ints padding = just(0), dilation = just(1);
  bool channels_last = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("kernel_size", a.kernel_size, required), f("stride", a.stride), f("padding", a.padding);
    f("dilation", a.dilation), f("channels_last", a.channels_last);
  }
};

struct AvgPoolAttrs {
  Ints kernel_size;
  Maybe<Ints> stride;
  Ints padding = just(0);
  bool count_include_pad = true, channels_last = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("kernel_size", a.kernel_size, required), f("stride", a.stride), f("padding", a.padding);
    f("count_include_pad", a.count_include_pad), f("channels_last", a.channels_last);
  }
};

struct GlobalPoolAttrs {
  bool channels_last = false;
  static constexpr void fields(auto& a, auto&& f) { f("channels_last", a.channels_last); }
};

/// Pools of one kind differ in the number of spatial axes.
struct PoolOf {
  std::string_view name, doc, example;
};

constexpr std::string_view kImages[] = {"batch channels length", "batch channels height width",
                                        "batch channels depth height width"};
constexpr std::string_view kWindows[] = {"batch channels _", "batch channels _ _",
                                         "batch channels _ _ _"};

template <int kAxes, class A>
void prepare_pool(A& a, std::string_view layer) {
  a.kernel_size = one_per_axis(layer, "kernel_size", a.kernel_size, kAxes);
  a.stride = one_per_axis(layer, "stride", a.stride.value_or(a.kernel_size), kAxes);
  a.padding = one_per_axis(layer, "padding", a.padding, kAxes, 0);
  if constexpr (requires { a.dilation; })
    a.dilation = one_per_axis(layer, "dilation", a.dilation, kAxes);
}

template <int kAxes>
constexpr LayerDef max_pool_layer(const PoolOf& of) {
  return Layer<MaxPoolAttrs>{
      .name = of.name,
      .doc = of.doc,
      .example = of.example,
      .module = "pools",
      .shown = "{kernel_size}",
      .keyword_only = "channels_last",
      .prepare = ops::rule<prepare_pool<kAxes, MaxPoolAttrs>>,
      .inputs = {{"x", kImages[kAxes - 1]}},
      .output = kWindows[kAxes - 1],
      .forward =
          [](const MaxPoolAttrs& a, const LayerCall& call) {
            return max_pool(call.in[0], a.kernel_size, a.stride, a.padding, a.dilation,
                            a.channels_last);
          },
  };
}

template <int kAxes>
constexpr LayerDef avg_pool_layer(const PoolOf& of) {
  return Layer<AvgPoolAttrs>{
      .name = of.name,
      .doc = of.doc,
      .example = of.example,
      .module = "pools",
      .shown = "{kernel_size}",
      .keyword_only = "channels_last",
      .prepare = ops::rule<prepare_pool<kAxes, AvgPoolAttrs>>,
      .inputs = {{"x", kImages[kAxes - 1]}},
      .output = kWindows[kAxes - 1],
      .forward =
          [](const AvgPoolAttrs& a, const LayerCall& call) {
            return avg_pool(call.in[0], a.kernel_size, a.stride, a.padding, a.count_include_pad,
                            a.channels_last);
          },
  };
}

Axes spatial_axes(const GlobalPoolAttrs& a, const Tensor& x) {
  Axes spatial;
  for (int axis = 2; axis < x.rank(); ++axis) spatial.push_back(axis - a.channels_last);
  return spatial;
}

Tensor mean_of_all(const GlobalPoolAttrs& a, const LayerCall& call) {
  return mean(call.in[0], spatial_axes(a, call.in[0]));
}
Tensor largest_of_all(const GlobalPoolAttrs& a, const LayerCall& call) {
  return max(call.in[0], spatial_axes(a, call.in[0]));
}

template <int kAxes, auto kForward>
constexpr LayerDef global_pool_layer(const PoolOf& of) {
  return Layer<GlobalPoolAttrs>{
      .name = of.name,
      .doc = of.doc,
      .example = of.example,
      .module = "pools",
      .keyword_only = "channels_last",
      .inputs = {{"x", kImages[kAxes - 1]}},
      .output = "batch channels",
      .forward = ops::rule<kForward>,
  };
}

struct ShuffleAttrs {
  int64_t upscale_factor = 0;
  bool channels_last = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("upscale_factor", a.upscale_factor, required), f("channels_last", a.channels_last);
  }
};
struct UnshuffleAttrs {
  int64_t downscale_factor = 0;
  bool channels_last = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("downscale_factor", a.downscale_factor, required), f("channels_last", a.channels_last);
  }
};

}  // namespace

constinit const LayerDef MaxPool1d = max_pool_layer<1>({
    .name = "MaxPool1d",
    .doc = "The largest element of each window of [batch, channels, length].",
    .example = R"(>>> tn.nn.MaxPool1d(2)(tn.array([[[1.0, 3.0, 2.0, 0.0]]])).tolist()
[[[3.0, 2.0]]]
)",
});

constinit const LayerDef MaxPool2d = max_pool_layer<2>({
    .name = "MaxPool2d",
    .doc = "The largest element of each window of [batch, channels, height, width].",
    .example = R"(>>> tn.nn.MaxPool2d(3, stride=2, padding=1)(tn.zeros((2, 8, 16, 20))).shape
(2, 8, 8, 10)
)",
});

constinit const LayerDef MaxPool3d = max_pool_layer<3>({
    .name = "MaxPool3d",
    .doc = "The largest element of each window of [batch, channels, depth, height, width].",
    .example = R"(>>> tn.nn.MaxPool3d(2)(tn.zeros((2, 8, 4, 6, 8))).shape
(2, 8, 2, 3, 4)
)",
});

constinit const LayerDef AvgPool1d = avg_pool_layer<1>({
    .name = "AvgPool1d",
    .doc = "The mean of each window of [batch, channels, length].",
    .example = R"(>>> tn.nn.AvgPool1d(2)(tn.array([[[1.0, 3.0, 2.0, 0.0]]])).tolist()
[[[2.0, 1.0]]]
)",
});

constinit const LayerDef AvgPool2d = avg_pool_layer<2>({
    .name = "AvgPool2d",
    .doc = "The mean of each window of [batch, channels, height, width].",
    .example = R"(>>> tn.nn.AvgPool2d(2)(tn.zeros((2, 8, 16, 20))).shape
(2, 8, 8, 10)
)",
});

constinit const LayerDef AvgPool3d = avg_pool_layer<3>({
    .name = "AvgPool3d",
    .doc = "The mean of each window of [batch, channels, depth, height, width].",
    .example = R"(>>> tn.nn.AvgPool3d(2)(tn.zeros((2, 8, 4, 6, 8))).shape
(2, 8, 2, 3, 4)
)",
});

constinit const LayerDef GlobalAvgPool1d = global_pool_layer<1, mean_of_all>({
    .name = "GlobalAvgPool1d",
    .doc = "The mean of each channel of [batch, channels, length]: [batch, channels].",
    .example = R"(>>> tn.nn.GlobalAvgPool1d()(tn.zeros((2, 8, 16))).shape
(2, 8)
)",
});

constinit const LayerDef GlobalAvgPool2d = global_pool_layer<2, mean_of_all>({
    .name = "GlobalAvgPool2d",
    .doc = "The mean of each channel of [batch, channels, height, width]: [batch, channels].",
    .example = R"(>>> tn.nn.GlobalAvgPool2d()(tn.zeros((2, 8, 16, 20))).shape
(2, 8)
)",
});

constinit const LayerDef GlobalAvgPool3d = global_pool_layer<3, mean_of_all>({
    .name = "GlobalAvgPool3d",
    .doc =
        "The mean of each channel of [batch, channels, depth, height, width]: [batch, channels].",
    .example = R"(>>> tn.nn.GlobalAvgPool3d()(tn.zeros((2, 8, 4, 6, 8))).shape
(2, 8)
)",
});

constinit const LayerDef GlobalMaxPool1d = global_pool_layer<1, largest_of_all>({
    .name = "GlobalMaxPool1d",
    .doc = "The largest element of each channel of [batch, channels, length]: [batch, channels].",
    .example = R"(>>> tn.nn.GlobalMaxPool1d()(tn.zeros((2, 8, 16))).shape
(2, 8)
)",
});

constinit const LayerDef GlobalMaxPool2d = global_pool_layer<2, largest_of_all>({
    .name = "GlobalMaxPool2d",
    .doc = "The largest element of each channel of [batch, channels, height, width]: [batch, "
           "channels].",
    .example = R"(>>> tn.nn.GlobalMaxPool2d()(tn.zeros((2, 8, 16, 20))).shape
(2, 8)
)",
});

constinit const LayerDef GlobalMaxPool3d = global_pool_layer<3, largest_of_all>({
    .name = "GlobalMaxPool3d",
    .doc = "The largest element of each channel of [batch, channels, depth, height, width]: "
           "[batch, channels].",
    .example = R"(>>> tn.nn.GlobalMaxPool3d()(tn.zeros((2, 8, 4, 6, 8))).shape
(2, 8)
)",
});

constinit const LayerDef PixelShuffle = Layer<ShuffleAttrs>{
    .name = "PixelShuffle",
    .doc = "[..., channels * r**2, height, width] as [..., channels, height * r, width * r].",
    .example = R"(>>> tn.nn.PixelShuffle(2)(tn.zeros((2, 12, 4, 5))).shape
(2, 3, 8, 10)
)",
    .module = "pools",
    .shown = "{upscale_factor}",
    .keyword_only = "channels_last",
    .prepare =
        [](ShuffleAttrs& a, std::string_view layer) {
          check_sizes(layer, {{"upscale_factor", a.upscale_factor}});
        },
    .inputs = {{"x", "*"}},
    .output = "*",
    .forward =
        [](const ShuffleAttrs& a, const LayerCall& call) {
          return pixel_shuffle(call.in[0], a.upscale_factor, a.channels_last);
        },
};

constinit const LayerDef PixelUnshuffle = Layer<UnshuffleAttrs>{
    .name = "PixelUnshuffle",
    .doc = "The inverse of `PixelShuffle`.",
    .example = R"(>>> tn.nn.PixelUnshuffle(2)(tn.zeros((2, 3, 8, 10))).shape
(2, 12, 4, 5)
)",
    .module = "pools",
    .shown = "{downscale_factor}",
    .keyword_only = "channels_last",
    .prepare =
        [](UnshuffleAttrs& a, std::string_view layer) {
          check_sizes(layer, {{"downscale_factor", a.downscale_factor}});
        },
    .inputs = {{"x", "*"}},
    .output = "*",
    .forward =
        [](const UnshuffleAttrs& a, const LayerCall& call) {
          return pixel_unshuffle(call.in[0], a.downscale_factor, a.channels_last);
        },
};

}  // namespace tn::nn::layers
