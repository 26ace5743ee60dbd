#pragma once
// Layers that normalise by mean and variance.
#include "tenon/nn/module.h"

namespace tn::nn {

/// Mean 0 and variance 1 along the last axis, then times `weight` plus `bias`.
class LayerNorm : public Module<LayerNorm> {
 public:
  int64_t dims;
  double eps;
  Tensor weight, bias;  // [dims], or null
  explicit LayerNorm(int64_t dims, double eps = 1e-5, bool affine = true, bool has_bias = true);
  Tensor operator()(const Operand& x) const;
  static void fields(auto& m, auto&& f) {
    f("weight", m.weight), f("bias", m.bias), f("eps", m.eps);
  }
};

/// `x / sqrt(mean(x * x) + eps) * weight`, along the last axis.
class RMSNorm : public Module<RMSNorm> {
 public:
  int64_t dims;
  double eps;
  Tensor weight;  // [dims], or null
  explicit RMSNorm(int64_t dims, double eps = 1e-5, bool affine = true);
  Tensor operator()(const Operand& x) const;
  static void fields(auto& m, auto&& f) { f("weight", m.weight), f("eps", m.eps); }
};

/// Normalises each example and each of `num_groups` runs of channels over everything else, then
/// times `weight` plus `bias`. `x` is [batch, num_channels, ...].
class GroupNorm : public Module<GroupNorm> {
 public:
  int64_t num_groups, num_channels;
  double eps;
  Tensor weight, bias;  // [num_channels], or null
  GroupNorm(int64_t num_groups, int64_t num_channels, double eps = 1e-5, bool affine = true);
  Tensor operator()(const Operand& x) const;
  static void fields(auto& m, auto&& f) {
    f("weight", m.weight), f("bias", m.bias), f("num_groups", m.num_groups), f("eps", m.eps);
  }
};

struct BatchNormSettings {
  double eps = 1e-5;
  double momentum = 0.1;  // how far the running statistics move to those of a batch
  bool affine = true;
  bool track_running_stats = true;
};

/// Normalises each channel over everything else, then times `weight` plus `bias`. `x` is
/// [batch, num_features, ...]. In training mean and variance are those of `x`, and the running ones
/// move to them (the variance there is that of a sample, with n - 1); otherwise they are the
/// running ones.
class BatchNorm : public Module<BatchNorm> {
 public:
  int64_t num_features;
  BatchNormSettings settings;
  Tensor weight, bias, running_mean, running_var;  // [num_features], or null
  explicit BatchNorm(int64_t num_features, const BatchNormSettings& settings = {});
  Tensor operator()(const Operand& x);
  /// A constant one has no way to move its statistics: it is an error in training.
  Tensor operator()(const Operand& x) const;
  static void fields(auto& m, auto&& f) {
    f("weight", m.weight), f("bias", m.bias);
    f("running_mean", m.running_mean, buffer), f("running_var", m.running_var, buffer);
    f("eps", m.settings.eps), f("momentum", m.settings.momentum);
  }

 private:
  Tensor checked(const Operand& x) const;
  /// Moves the running statistics to these.
  void track(const Tensor& mean, const Tensor& var);
  Tensor normalized(const Tensor& x, const Tensor& mean, const Tensor& var) const;
};
using BatchNorm2d = BatchNorm;

}  // namespace tn::nn
