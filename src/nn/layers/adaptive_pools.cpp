// Pools into a given number of windows. A size of -1 leaves an axis as it is.
#include "nn/layer_decls.h"
#include "tenon/ops.h"

namespace tn::nn::layers {
namespace {

struct AdaptivePoolAttrs {
  Ints output_size;
  bool channels_last = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("output_size", a.output_size, required), f("channels_last", a.channels_last);
  }
};

template <int kAxes>
void prepare_adaptive_pool(AdaptivePoolAttrs& a, std::string_view layer) {
  Ints known = a.output_size;
  std::ranges::replace(known, -1, 1);
  one_per_axis(layer, "output_size", known, kAxes);
  a.output_size = one_per_axis(layer, "output_size", a.output_size, kAxes, -1);
}

template <auto kPool>
Tensor pool_adaptively(const AdaptivePoolAttrs& a, const LayerCall& call) {
  Ints sizes = a.output_size;
  for (int i = 0; i < sizes.size(); ++i)
    if (sizes[i] == -1) sizes[i] = call.in[0].dim(i + (a.channels_last ? 1 : 2));
  return kPool(call.in[0], sizes, a.channels_last);
}

constexpr std::string_view kPooled[] = {"batch channels length", "batch channels height width",
                                        "batch channels depth height width"};

struct AdaptivePoolOf {
  std::string_view name, doc, example;
};

template <int kAxes, auto kPool>
constexpr LayerDef adaptive_pool_layer(const AdaptivePoolOf& of) {
  return Layer<AdaptivePoolAttrs>{
      .name = of.name,
      .doc = of.doc,
      .example = of.example,
      .module = "adaptive_pooling",
      .shown = "{output_size}",
      .keyword_only = "channels_last",
      .open = "output_size",
      .prepare = ops::rule<prepare_adaptive_pool<kAxes>>,
      .inputs = {{"x", kPooled[kAxes - 1]}},
      .output = "batch channels output_size",
      .forward = ops::rule<pool_adaptively<kPool>>,
  };
}

}  // namespace

constinit const LayerDef AdaptiveAvgPool1d = adaptive_pool_layer<1, adaptive_avg_pool>({
    .name = "AdaptiveAvgPool1d",
    .doc = "The means of `output_size` windows of [batch, channels, length].\n\n"
           "A size of None leaves an axis as it is.",
    .example = ">>> tn.nn.AdaptiveAvgPool1d(2)(tn.zeros((2, 8, 4))).shape\n(2, 8, 2)\n",
});

constinit const LayerDef AdaptiveAvgPool2d = adaptive_pool_layer<2, adaptive_avg_pool>({
    .name = "AdaptiveAvgPool2d",
    .doc = "The means of `output_size` windows of [batch, channels, height, width].\n\n"
           "A size of None leaves an axis as it is.",
    .example = ">>> tn.nn.AdaptiveAvgPool2d(2)(tn.zeros((2, 8, 4, 6))).shape\n(2, 8, 2, 2)\n",
});

constinit const LayerDef AdaptiveAvgPool3d = adaptive_pool_layer<3, adaptive_avg_pool>({
    .name = "AdaptiveAvgPool3d",
    .doc = "The means of `output_size` windows of [batch, channels, depth, height, width].\n\n"
           "A size of None leaves an axis as it is.",
    .example = ">>> tn.nn.AdaptiveAvgPool3d(2)(tn.zeros((2, 8, 4, 6, 9))).shape\n(2, 8, 2, 2, 2)\n",
});

constinit const LayerDef AdaptiveMaxPool1d = adaptive_pool_layer<1, adaptive_max_pool>({
    .name = "AdaptiveMaxPool1d",
    .doc = "The largest elements of `output_size` windows of [batch, channels, length].\n\n"
           "A size of None leaves an axis as it is.",
    .example = ">>> tn.nn.AdaptiveMaxPool1d(2)(tn.zeros((2, 8, 4))).shape\n(2, 8, 2)\n",
});

constinit const LayerDef AdaptiveMaxPool2d = adaptive_pool_layer<2, adaptive_max_pool>({
    .name = "AdaptiveMaxPool2d",
    .doc = "The largest elements of `output_size` windows of [batch, channels, height, width].\n\n"
           "A size of None leaves an axis as it is.",
    .example = ">>> tn.nn.AdaptiveMaxPool2d(2)(tn.zeros((2, 8, 4, 6))).shape\n(2, 8, 2, 2)\n",
});

constinit const LayerDef AdaptiveMaxPool3d = adaptive_pool_layer<3, adaptive_max_pool>({
    .name = "AdaptiveMaxPool3d",
    .doc = "The largest elements of `output_size` windows of [batch, channels, depth, height, "
           "width].\n\n"
           "A size of None leaves an axis as it is.",
    .example = ">>> tn.nn.AdaptiveMaxPool3d(2)(tn.zeros((2, 8, 4, 6, 9))).shape\n(2, 8, 2, 2, 2)\n",
});

}  // namespace tn::nn::layers
