// Layers that leave out a part of their input in training. They draw from the random state of the
// thread, which compiled functions capture.
#include "nn/layer_decls.h"
#include "tenon/operators.h"

namespace tn::nn::layers {
namespace {

struct DropoutAttrs {
  double p = 0.5;
  static constexpr void fields(auto& a, auto&& f) { f("p", a.p); }
};

struct ChannelDropoutAttrs {
  double p = 0.5;
  bool channels_last = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("p", a.p), f("channels_last", a.channels_last);
  }
};

template <class A>
void check_probability(A& a, std::string_view layer) {
  if (!(a.p >= 0 && a.p < 1)) fail("{}: p must be at least 0 and less than 1, not {}", layer, a.p);
}

/// Ones where the axes of space have one element each: a factor for each channel.
Tensor drop_channels(const ChannelDropoutAttrs& a, const LayerCall& call) {
  const Tensor& x = call.in[0];
  if (!call.training) return x;
  Shape shape = x.shape();
  int channels = a.channels_last ? x.rank() - 1 : 1;
  for (int axis = 1; axis < x.rank(); ++axis)
    if (axis != channels) shape[axis] = 1;
  return x * dropout(ones(shape, x.dtype(), x.device()), call.key, a.p);
}

}  // namespace

constinit const LayerDef Dropout = Layer<DropoutAttrs>{
    .name = "Dropout",
    .doc =
        "In training, sets elements to zero with probability `p` and divides the others by "
        "`1 - p`.",
    .example = R"(>>> layer = tn.nn.Dropout(0.25)
>>> sorted(set(layer(tn.ones(100)).tolist()))
[0.0, 1.3333333730697632]
>>> layer.eval()(tn.ones(2)).tolist()
[1.0, 1.0]
)",
    .module = "dropout",
    .shown = "p={p}",
    .prepare = ops::rule<check_probability<DropoutAttrs>>,
    .inputs = {{"x", "..."}},
    .output = "...",
    .draws = true,
    .forward =
        [](const DropoutAttrs& a, const LayerCall& call) {
          return call.training ? dropout(call.in[0], call.key, a.p) : call.in[0];
        },
};

constinit const LayerDef Dropout2d = Layer<ChannelDropoutAttrs>{
    .name = "Dropout2d",
    .doc = "`Dropout` of whole channels of [batch, channels, height, width].",
    .example = R"(>>> out = tn.nn.Dropout2d(0.5)(tn.ones((4, 8, 3, 3)))
>>> tn.all(out == out[:, :, :1, :1]).item()
True
)",
    .module = "dropout",
    .base = "Dropout",
    .shown = "p={p}",
    .keyword_only = "channels_last",
    .prepare = ops::rule<check_probability<ChannelDropoutAttrs>>,
    .inputs = {{"x", "batch channels height width"}},
    .output = "batch channels height width",
    .draws = true,
    .forward = ops::rule<drop_channels>,
};

constinit const LayerDef Dropout3d = Layer<ChannelDropoutAttrs>{
    .name = "Dropout3d",
    .doc = "`Dropout` of whole channels of [batch, channels, depth, height, width].",
    .example = R"(>>> tn.nn.Dropout3d(0.5)(tn.ones((4, 8, 3, 3, 3))).shape
(4, 8, 3, 3, 3)
)",
    .module = "dropout",
    .base = "Dropout",
    .shown = "p={p}",
    .keyword_only = "channels_last",
    .prepare = ops::rule<check_probability<ChannelDropoutAttrs>>,
    .inputs = {{"x", "batch channels depth height width"}},
    .output = "batch channels depth height width",
    .draws = true,
    .forward = ops::rule<drop_channels>,
};

}  // namespace tn::nn::layers
