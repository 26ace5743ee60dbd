// Layers that normalise.
#include "model/layer.h"
#include "model/spatial_layers.h"
#include "tenon/nn/normalization.h"
#include "tenon/ops.h"

namespace tn::model {
namespace {

/// Weight and bias, where there are any.
void add_affine(Layer& layer, const NormSettings& s, const std::string& shape) {
  layer.setting("eps", s.eps, 1e-5);
  if (!s.affine) return;
  layer.parameter("weight", shape, all_ones);
  if (s.bias) layer.parameter("bias", shape, all_zeros);
}

struct Affine {
  Tensor weight, bias;
};
Affine affine_of(const BlockCall& call, const NormSettings& s) {
  return {s.affine ? call.in[1] : Tensor(), s.affine && s.bias ? call.in[2] : Tensor()};
}

/// The running statistics are the last two terminals. All else is the module's.
Tensors batch_norm_of(const BlockCall& call, const NormSettings& s) {
  size_t mean = call.in.size() - 2, var = call.in.size() - 1;
  nn::BatchNorm norm(call.in[mean].dim(0), {.eps = s.eps, .momentum = s.momentum});
  Affine affine = affine_of(call, s);
  norm.weight = affine.weight, norm.bias = affine.bias;
  norm.running_mean = call.in[mean], norm.running_var = call.in[var];
  norm.train(call.training);
  Tensor out = norm(call.in[0]);
  return {out, norm.running_mean, norm.running_var};
}

}  // namespace

Block batch_norm_block(int axes, const NormSettings& s) {
  std::string shape = "batch channels" + (axes == 1 ? " ..." : spatial_axes(axes));
  Layer layer(format("BatchNorm{}d", axes));
  layer.size("channels", s.size).input("input", shape);
  add_affine(layer, s, "channels");
  layer.setting("momentum", s.momentum, 0.1);
  layer.state("running_mean", "channels", all_zeros).state("running_var", "channels", all_ones);
  return layer.computes_all(shape, [s](const BlockCall& call) { return batch_norm_of(call, s); });
}

Block BatchNorm1d(const NormSettings& s) { return batch_norm_block(1, s); }
Block BatchNorm2d(const NormSettings& s) { return batch_norm_block(2, s); }
Block BatchNorm3d(const NormSettings& s) { return batch_norm_block(3, s); }

Block LayerNorm(const NormSettings& s, std::span<const int64_t> extents) {
  Layer layer("LayerNorm");
  layer.size("dims", s.size);
  std::string dims = extents.empty() ? "dims" : "";
  for (int64_t size : extents) {
    nn::check_sizes("LayerNorm", {{"normalized_shape", size}});
    dims += format("{}{}", dims.empty() ? "" : " ", size);
  }
  layer.input("input", "... " + dims);
  add_affine(layer, s, dims);
  int64_t axes = extents.empty() ? 1 : std::ssize(extents);
  return layer.computes("... " + dims, [=](const BlockCall& call) {
    Affine affine = affine_of(call, s);
    return layer_norm(call.in[0], affine.weight, affine.bias, s.eps, axes);
  });
}

Block RMSNorm(const NormSettings& settings) {
  NormSettings s = settings;
  s.bias = false;
  Layer layer("RMSNorm");
  layer.size("dims", s.size).input("input", "... dims");
  add_affine(layer, s, "dims");
  return layer.computes("... dims", [s](const BlockCall& call) {
    return rms_norm(call.in[0], affine_of(call, s).weight, s.eps);
  });
}

Block GroupNorm(int64_t groups, const NormSettings& s) {
  nn::check_sizes("GroupNorm", {{"num_groups", groups}});
  if (s.size) nn::check_divides("GroupNorm", {"num_groups", groups}, {{"num_channels", *s.size}});
  Layer layer("GroupNorm");
  layer.setting("num_groups", groups).size("channels", s.size);
  layer.multiple("channels", groups, "group").input("input", "batch channels ...");
  add_affine(layer, s, "channels");
  return layer.computes("batch channels ...", [=](const BlockCall& call) {
    Affine affine = affine_of(call, s);
    return group_norm(call.in[0], affine.weight, affine.bias, groups, s.eps, 1);
  });
}

Block InstanceNorm(const NormSettings& s) {
  Layer layer("InstanceNorm");
  layer.size("channels", s.size).input("input", "batch channels ...");
  add_affine(layer, s, "channels");
  return layer.computes("batch channels ...", [s](const BlockCall& call) {
    Affine affine = affine_of(call, s);
    return group_norm(call.in[0], affine.weight, affine.bias, call.in[0].dim(1), s.eps, 1);
  });
}

}  // namespace tn::model
