#pragma once
// Activations as layers: values with their parameters, for a Sequential or a member of a model.
//
//     nn::Sequential model{nn::Linear(784, 256), nn::LeakyReLU(0.2), nn::Linear(256, 10)};
#include "tenon/nn/activations.h"

namespace tn::nn {

/// `x` where it is positive, else `alpha * (exp(x / alpha) - 1)`.
struct CELU {
  double alpha = 1;

  Tensor operator()(const Operand& x) const { return celu(x, alpha); }
  static void fields(auto& m, auto&& f) { f("alpha", m.alpha); }
};

/// `x` where it is positive, else `alpha * (exp(x) - 1)`.
struct ELU {
  double alpha = 1;

  Tensor operator()(const Operand& x) const { return elu(x, alpha); }
  static void fields(auto& m, auto&& f) { f("alpha", m.alpha); }
};

/// `a * sigmoid(b)`, where `a` and `b` are the halves of `x` along `axis`.
struct GLU {
  int axis = -1;

  Tensor operator()(const Operand& x) const { return glu(x, axis); }
  static void fields(auto& m, auto&& f) { f("axis", m.axis); }
};

/// `x` where its magnitude exceeds `lambd`, else 0.
struct HardShrink {
  double lambd = 0.5;

  Tensor operator()(const Operand& x) const { return hard_shrink(x, lambd); }
  static void fields(auto& m, auto&& f) { f("lambd", m.lambd); }
};

/// `x` limited to [`min_val`, `max_val`].
struct HardTanh {
  double min_val = -1;
  double max_val = 1;

  Tensor operator()(const Operand& x) const { return hard_tanh(x, min_val, max_val); }
  static void fields(auto& m, auto&& f) { f("min_val", m.min_val), f("max_val", m.max_val); }
};

/// `x`, multiplied by `negative_slope` where it is negative.
struct LeakyReLU {
  double negative_slope = 0.01;

  Tensor operator()(const Operand& x) const { return leaky_relu(x, negative_slope); }
  static void fields(auto& m, auto&& f) { f("negative_slope", m.negative_slope); }
};

/// `log(softmax(x))` along `axis`, without overflow.
struct LogSoftmax {
  int axis = -1;

  Tensor operator()(const Operand& x) const { return log_softmax(x, Axes{axis}); }
  static void fields(auto& m, auto&& f) { f("axis", m.axis); }
};

/// `exp(x)`, divided by its sum along `axis`.
struct Softmax {
  int axis = -1;

  Tensor operator()(const Operand& x) const { return softmax(x, Axes{axis}); }
  static void fields(auto& m, auto&& f) { f("axis", m.axis); }
};

/// `softmax(-x)` along `axis`.
struct Softmin {
  int axis = -1;

  Tensor operator()(const Operand& x) const { return softmin(x, axis); }
  static void fields(auto& m, auto&& f) { f("axis", m.axis); }
};

/// `x` shrunk towards 0 by `lambd`; 0 where its magnitude is at most `lambd`.
struct Softshrink {
  double lambd = 0.5;

  Tensor operator()(const Operand& x) const { return softshrink(x, lambd); }
  static void fields(auto& m, auto&& f) { f("lambd", m.lambd); }
};

/// 1 where `x` exceeds `threshold`, else 0.
struct Step {
  double threshold = 0;

  Tensor operator()(const Operand& x) const { return step(x, threshold); }
  static void fields(auto& m, auto&& f) { f("threshold", m.threshold); }
};

/// `x` times the normal distribution function at `x`.
struct GELU {
  Tensor operator()(const Operand& x) const { return gelu(x); }
  static void fields(auto&, auto&&) {}
};

/// `x * relu6(x + 3) / 6`.
struct Hardswish {
  Tensor operator()(const Operand& x) const { return hardswish(x); }
  static void fields(auto&, auto&&) {}
};

/// `log(sigmoid(x))`, without overflow.
struct LogSigmoid {
  Tensor operator()(const Operand& x) const { return log_sigmoid(x); }
  static void fields(auto&, auto&&) {}
};

/// `x * tanh(softplus(x))`.
struct Mish {
  Tensor operator()(const Operand& x) const { return mish(x); }
  static void fields(auto&, auto&&) {}
};

/// `max(x, 0)`.
struct ReLU {
  Tensor operator()(const Operand& x) const { return relu(x); }
  static void fields(auto&, auto&&) {}
};

/// `relu(x)` squared.
struct ReLU2 {
  Tensor operator()(const Operand& x) const { return relu2(x); }
  static void fields(auto&, auto&&) {}
};

/// `x` limited to [0, 6].
struct ReLU6 {
  Tensor operator()(const Operand& x) const { return relu6(x); }
  static void fields(auto&, auto&&) {}
};

/// A scaled `elu` that preserves mean 0 and variance 1.
struct SELU {
  Tensor operator()(const Operand& x) const { return selu(x); }
  static void fields(auto&, auto&&) {}
};

/// `x * sigmoid(x)`.
struct SiLU {
  Tensor operator()(const Operand& x) const { return silu(x); }
  static void fields(auto&, auto&&) {}
};

/// `1 / (1 + exp(-x))`.
struct Sigmoid {
  Tensor operator()(const Operand& x) const { return sigmoid(x); }
  static void fields(auto&, auto&&) {}
};

/// `log(1 + exp(x))`.
struct Softplus {
  Tensor operator()(const Operand& x) const { return softplus(x); }
  static void fields(auto&, auto&&) {}
};

/// `x / (1 + abs(x))`.
struct Softsign {
  Tensor operator()(const Operand& x) const { return softsign(x); }
  static void fields(auto&, auto&&) {}
};

/// The hyperbolic tangent.
struct Tanh {
  Tensor operator()(const Operand& x) const { return tanh(x); }
  static void fields(auto&, auto&&) {}
};

}  // namespace tn::nn
