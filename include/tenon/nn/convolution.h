#pragma once
// Convolutions. Channels are axis 1, as in PyTorch.
#include "tenon/nn/module.h"

namespace tn::nn {

/// One number for all spatial axes, or one for each.
struct ConvSettings {
  Ints stride = {1}, padding = {0}, dilation = {1};
  int64_t groups = 1;
  bool bias = true;
};

/// Kernels slid along `x`, [batch, in_channels, length].
class Conv1d : public Module<Conv1d> {
 public:
  Tensor weight, bias;  // [out_channels, in_channels / groups, k], [out_channels] or null
  ConvSettings settings;
  Conv1d(int64_t in_channels, int64_t out_channels, int64_t kernel_size,
         const ConvSettings& settings = {});
  Tensor operator()(const Operand& x) const;
  static void fields(auto& m, auto&& f) {
    f("weight", m.weight), f("bias", m.bias), f("stride", m.settings.stride);
    f("padding", m.settings.padding), f("dilation", m.settings.dilation);
  }
};

/// Kernels slid over `x`, [batch, in_channels, height, width]. `kernel_size` is one number or two.
class Conv2d : public Module<Conv2d> {
 public:
  Tensor weight, bias;  // [out_channels, in_channels / groups, kh, kw], [out_channels] or null
  ConvSettings settings;
  Conv2d(int64_t in_channels, int64_t out_channels, const Ints& kernel_size,
         const ConvSettings& settings = {});
  Tensor operator()(const Operand& x) const;
  static void fields(auto& m, auto&& f) { Conv1d::fields(m, f); }
};

}  // namespace tn::nn
