// Normalisations: `(x - mean) / sqrt(var + eps) * weight + bias`, with means over various axes.
#include "ir/dim.h"
#include "ir/node.h"
#include "nn/layer_decls.h"
#include "tenon/operators.h"

namespace tn::nn::layers {
namespace {

struct BatchNormAttrs {
  int64_t num_features = 0;
  double eps = 1e-5, momentum = 0.1;
  bool affine = true, track_running_stats = true, channels_last = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("num_features", a.num_features, required), f("eps", a.eps), f("momentum", a.momentum);
    f("affine", a.affine), f("track_running_stats", a.track_running_stats);
    f("channels_last", a.channels_last);
  }
};

struct GroupNormAttrs {
  int64_t num_groups = 0, num_channels = 0;
  double eps = 1e-5;
  bool affine = true, channels_last = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("num_groups", a.num_groups, required), f("num_channels", a.num_channels, required);
    f("eps", a.eps), f("affine", a.affine), f("channels_last", a.channels_last);
  }
};

struct InstanceNormAttrs {
  int64_t num_features = 0;
  double eps = 1e-5;
  bool affine = false, channels_last = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("num_features", a.num_features, required), f("eps", a.eps), f("affine", a.affine);
    f("channels_last", a.channels_last);
  }
};

struct LayerNormAttrs {
  Ints normalized_shape;
  double eps = 1e-5;
  bool affine = true, bias = true;
  static constexpr void fields(auto& a, auto&& f) {
    f("normalized_shape", a.normalized_shape, required), f("eps", a.eps), f("affine", a.affine);
    f("bias", a.bias);
  }
};

struct RMSNormAttrs {
  int64_t dims = 0;
  double eps = 1e-5;
  bool affine = true;
  static constexpr void fields(auto& a, auto&& f) {
    f("dims", a.dims, required), f("eps", a.eps), f("affine", a.affine);
  }
};

template <class A>
Axis channel_axis(const A& a) {
  return a.channels_last ? -1 : 1;
}

/// All axes but that of the channels.
Axes other_axes(const Tensor& x, Axis channels) {
  Axes others;
  for (int axis = 0; axis < x.rank(); ++axis)
    if (axis != (channels.i < 0 ? channels.i + x.rank() : channels.i)) others.push_back(axis);
  return others;
}

enum Held { kWeight, kBias, kMean, kVariance };

/// Updates the running statistics with those of a batch, each computed from `count` values.
void track(const BatchNormAttrs& a, const LayerCall& call, const Tensor& mean, const Tensor& var,
           Dim count) {
  Tensor &running_mean = call.held[kMean], &running_var = call.held[kVariance];
  // Pending statistics would keep all activations alive in a loop that never reads them.
  if (!running_mean.node()->traced) tn::eval({running_mean, running_var});
  auto moved = [&](const Tensor& running, const Tensor& now) {
    return astype((1 - a.momentum) * running + a.momentum * stop_gradient(now), running.dtype());
  };
  running_mean = moved(running_mean, mean);
  running_var = moved(running_var, var * count / (count - 1));
}

Tensor batch_norm_forward(const BatchNormAttrs& a, const LayerCall& call) {
  const Tensor& x = call.in[0];
  Axis axis = channel_axis(a);
  Tensor mean = call.held[kMean], var = call.held[kVariance];
  if (call.training || !mean.defined()) {
    bool tracks = call.training && mean.defined();
    Axes others = other_axes(x, axis);
    mean = tn::mean(x, others), var = tn::var(x, others);
    if (tracks) {
      Dim count = floor_div(x.shape().elements(), a.num_features);
      if (count.is(1))
        fail("{}: training needs more than one value a channel: {}", call.layer, *type_of(x));
      track(a, call, mean, var, count);
    }
  }
  return batch_norm(x, mean, var, call.held[kWeight], call.held[kBias], a.eps, axis);
}

/// The parameters in which batch norms differ.
struct BatchNormOf {
  std::string_view name, doc, example, base, shape;
};

constexpr LayerDef batch_norm_layer(const BatchNormOf& of) {
  return Layer<BatchNormAttrs>{
      .name = of.name,
      .doc = of.doc,
      .example = of.example,
      .module = "normalization",
      .base = of.base,
      .shown = "{num_features}",
      .inferred = "num_features",
      .keyword_only = "channels_last",
      .tensors = {{"weight", "num_features", all_ones, "affine"},
                  {"bias", "num_features", all_zeros, "affine"},
                  {"running_mean", "num_features", all_zeros, "track_running_stats", true},
                  {"running_var", "num_features", all_ones, "track_running_stats", true}},
      .inputs = {{"x", of.shape}},
      .output = of.shape,
      .forward = ops::rule<batch_norm_forward>,
  };
}

}  // namespace

constinit const LayerDef BatchNorm = batch_norm_layer({
    .name = "BatchNorm",
    .doc = "Normalises each channel over everything else.\n\n"
           "`x` is [batch, num_features, ...], or [..., num_features] with `channels_last`. In "
           "training the mean and variance are those of `x`, and `running_mean` and `running_var` "
           "move to them by `momentum` of the way (the variance there is that of a sample, with n "
           "- 1). Otherwise they are the running ones. These are buffers: state that is never "
           "trained. The `num_batches_tracked` of PyTorch's files has no use here, and is left "
           "out when they are loaded.",
    .example = R"(>>> layer = tn.nn.BatchNorm(2)
>>> layer(tn.array([[1.0, 10.0], [3.0, 30.0]])).round(3).tolist()
[[-1.0, -1.0], [1.0, 1.0]]
>>> layer.running_mean.tolist()
[0.20000000298023224, 2.0]
)",
    .base = "",
    .shape = "batch num_features ...",
});

constinit const LayerDef BatchNorm1d = batch_norm_layer({
    .name = "BatchNorm1d",
    .doc = "`BatchNorm` of [batch, num_features] or [batch, num_features, length].",
    .example = R"(>>> tn.nn.BatchNorm1d(8)(tn.zeros((4, 8, 20))).shape
(4, 8, 20)
)",
    .base = "BatchNorm",
    .shape = "batch num_features | batch num_features length",
});

constinit const LayerDef BatchNorm2d = batch_norm_layer({
    .name = "BatchNorm2d",
    .doc = "`BatchNorm` of [batch, num_features, height, width].",
    .example = R"(>>> tn.nn.BatchNorm2d(8)(tn.zeros((4, 8, 16, 16))).shape
(4, 8, 16, 16)
)",
    .base = "BatchNorm",
    .shape = "batch num_features height width",
});

constinit const LayerDef BatchNorm3d = batch_norm_layer({
    .name = "BatchNorm3d",
    .doc = "`BatchNorm` of [batch, num_features, depth, height, width].",
    .example = R"(>>> tn.nn.BatchNorm3d(8)(tn.zeros((4, 8, 5, 6, 7))).shape
(4, 8, 5, 6, 7)
)",
    .base = "BatchNorm",
    .shape = "batch num_features depth height width",
});

constinit const LayerDef GroupNorm = Layer<GroupNormAttrs>{
    .name = "GroupNorm",
    .doc =
        "Normalises each example and each of `num_groups` runs of channels over everything "
        "else.\n\n"
        "`x` is [batch, num_channels, ...], or [batch, ..., num_channels] with "
        "`channels_last`.",
    .example = R"(>>> tn.nn.GroupNorm(2, 4)(tn.array([[1.0, 3.0, 5.0, 9.0]])).round(3).tolist()
[[-1.0, 1.0, -1.0, 1.0]]
)",
    .module = "normalization",
    .shown = "{num_channels} in {num_groups} groups",
    .inferred = "num_channels",
    .keyword_only = "channels_last",
    .multiples = {{"num_channels", "num_groups", "group"}},
    .tensors = {{"weight", "num_channels", all_ones, "affine"},
                {"bias", "num_channels", all_zeros, "affine"}},
    .inputs = {{"x", "batch num_channels ..."}},
    .output = "batch num_channels ...",
    .forward =
        [](const GroupNormAttrs& a, const LayerCall& call) {
          return group_norm(call.in[0], call.held[kWeight], call.held[kBias], a.num_groups, a.eps,
                            channel_axis(a));
        },
};

constinit const LayerDef InstanceNorm = Layer<InstanceNormAttrs>{
    .name = "InstanceNorm",
    .doc =
        "Normalises each example and each channel over everything else, `GroupNorm` of single "
        "ones.",
    .example = R"(>>> tn.nn.InstanceNorm(2)(tn.array([[[1.0, 3.0], [5.0, 9.0]]])).round(3).tolist()
[[[-1.0, 1.0], [-1.0, 1.0]]]
)",
    .module = "normalization",
    .shown = "{num_features}",
    .also_called = {{"num_channels", "num_features"}},
    .inferred = "num_features",
    .keyword_only = "channels_last",
    .tensors = {{"weight", "num_features", all_ones, "affine"},
                {"bias", "num_features", all_zeros, "affine"}},
    .inputs = {{"x", "batch num_features ..."}},
    .output = "batch num_features ...",
    .forward =
        [](const InstanceNormAttrs& a, const LayerCall& call) {
          int64_t channels = call.in[0].dim(channel_axis(a).i);
          return group_norm(call.in[0], call.held[kWeight], call.held[kBias], channels, a.eps,
                            channel_axis(a));
        },
};

constinit const LayerDef LayerNorm = Layer<LayerNormAttrs>{
    .name = "LayerNorm",
    .doc = "Normalises over the last axes, whose extents are `normalized_shape`.",
    .example = R"(>>> tn.nn.LayerNorm(2)(tn.array([[1.0, 3.0], [5.0, 9.0]])).round(3).tolist()
[[-1.0, 1.0], [-1.0, 1.0]]
)",
    .module = "normalization",
    .shown = "{*normalized_shape}",
    .also_called = {{"elementwise_affine", "affine"}},
    .inferred = "normalized_shape",
    .tensors = {{"weight", "normalized_shape", all_ones, "affine"},
                {"bias", "normalized_shape", all_zeros, "affine bias"}},
    .inputs = {{"x", "... normalized_shape"}},
    .output = "... normalized_shape",
    .forward =
        [](const LayerNormAttrs& a, const LayerCall& call) {
          int64_t axes = std::max(a.normalized_shape.size(), 1);
          return layer_norm(call.in[0], call.held[kWeight], call.held[kBias], a.eps, axes);
        },
};

constinit const LayerDef RMSNorm = Layer<RMSNormAttrs>{
    .name = "RMSNorm",
    .doc = "`x / sqrt(mean(x * x) + eps) * weight`, along the last axis.",
    .example = R"(>>> tn.nn.RMSNorm(2)(tn.array([3.0, -3.0])).round(3).tolist()
[1.0, -1.0]
)",
    .module = "normalization",
    .shown = "{dims}",
    .inferred = "dims",
    .tensors = {{"weight", "dims", all_ones, "affine"}},
    .inputs = {{"x", "... dims"}},
    .output = "... dims",
    .forward =
        [](const RMSNormAttrs& a, const LayerCall& call) {
          return rms_norm(call.in[0], call.held[kWeight], a.eps);
        },
};

}  // namespace tn::nn::layers
