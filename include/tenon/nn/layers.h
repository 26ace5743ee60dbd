#pragma once
// Layers. Fields, layouts and initial values are those of Python's `tenon.nn`, and of PyTorch:
// channels are axis 1.
#include "tenon/nn/module.h"

namespace tn::nn {

/// `x @ weight.T + bias`, along the last axis of `x`. Both are drawn uniformly between plus and
/// minus 1 / sqrt(input_dims).
class Linear : public Module<Linear> {
 public:
  Tensor weight, bias;  // [output_dims, input_dims], [output_dims] or null
  Linear(int64_t input_dims, int64_t output_dims, bool has_bias = true);
  Tensor operator()(const Operand& x) const;
  static void fields(auto& m, auto&& f) { f("weight", m.weight), f("bias", m.bias); }
};

/// The rows of `weight` at the given integers, of any shape. Drawn from the normal distribution.
class Embedding : public Module<Embedding> {
 public:
  Tensor weight;  // [num_embeddings, dims]
  Embedding(int64_t num_embeddings, int64_t dims);
  Tensor operator()(const Operand& indices) const;
  /// `x @ weight.T`: the logits of a model whose last layer has the weight of its first.
  Tensor as_linear(const Operand& x) const;
  static void fields(auto& m, auto&& f) { f("weight", m.weight); }
};

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

struct PoolSettings {
  Maybe<Ints> stride = {};  // left out: the size of the window
  Ints padding = {0};
};

/// The largest element of each window over [batch, channels, height, width].
class MaxPool2d : public Module<MaxPool2d> {
 public:
  Ints kernel_size;
  PoolSettings settings;
  explicit MaxPool2d(const Ints& kernel_size, const PoolSettings& settings = {})
      : kernel_size(kernel_size), settings(settings) {}
  Tensor operator()(const Operand& x) const;
  static void fields(auto& m, auto&& f) {
    f("kernel_size", m.kernel_size), f("padding", m.settings.padding);
    if (m.settings.stride) f("stride", m.settings.stride.value);
  }
};

/// The mean of each window.
class AvgPool2d : public Module<AvgPool2d> {
 public:
  Ints kernel_size;
  PoolSettings settings;
  explicit AvgPool2d(const Ints& kernel_size, const PoolSettings& settings = {})
      : kernel_size(kernel_size), settings(settings) {}
  Tensor operator()(const Operand& x) const;
  static void fields(auto& m, auto&& f) { MaxPool2d::fields(m, f); }
};

/// All axes but the batch as one.
class Flatten : public Module<Flatten> {
 public:
  Tensor operator()(const Operand& x) const;
  static void fields(auto&, auto&&) {}
};

/// In training, sets elements to zero with probability `p` and divides the others by `1 - p`. It
/// draws from the random state of the thread.
class Dropout : public Module<Dropout> {
 public:
  double p;
  explicit Dropout(double p = 0.5);
  Tensor operator()(const Operand& x) const;
  static void fields(auto& m, auto&& f) { f("p", m.p); }
};

/// `softmax(q @ k.T / sqrt(depth)) @ v` in `num_heads` heads of depth `dims / num_heads`, where q,
/// k and v are linear in queries, keys and values, and the result in the heads.
class MultiHeadAttention : public Module<MultiHeadAttention> {
 public:
  int64_t num_heads;
  Tensor in_proj_weight, in_proj_bias;  // for q, k and v: [3 dims, dims], [3 dims] or null
  Linear out_proj;
  MultiHeadAttention(int64_t dims, int64_t num_heads, bool has_bias = true);
  /// Self-attention over [batch, positions, dims]. With `causal` a position sees those up to
  /// itself. `mask` broadcasts to [batch, heads, queries, keys]: bool keeps where true, floats are
  /// added.
  Tensor operator()(const Operand& x, const Operand& mask = nullptr, bool causal = false) const;
  Tensor operator()(const Operand& queries, const Operand& keys, const Operand& values,
                    const Operand& mask = nullptr, bool causal = false) const;
  static void fields(auto& m, auto&& f) {
    f("num_heads", m.num_heads), f("in_proj_weight", m.in_proj_weight);
    f("in_proj_bias", m.in_proj_bias), f("out_proj", m.out_proj);
  }

 private:
  Tensor attend(const Tensors& projected, const Operand& mask, bool causal) const;
};

}  // namespace tn::nn
