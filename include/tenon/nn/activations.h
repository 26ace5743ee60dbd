#pragma once
// Activations and the loss of classifiers under the names they have in `nn`: functions of tensors,
// and layers of a Sequential.
//
//     nn::Sequential model{nn::Linear(784, 256), nn::relu, nn::Linear(256, 10)};
#include "tenon/ops.h"

namespace tn::nn {

using tn::celu;
using tn::cross_entropy;
using tn::elu;
using tn::gelu;
using tn::gelu_tanh;
using tn::hard_tanh;
using tn::hardswish;
using tn::leaky_relu;
using tn::log_sigmoid;
using tn::log_softmax;
using tn::mish;
using tn::relu;
using tn::relu6;
using tn::selu;
using tn::sigmoid;
using tn::silu;
using tn::softmax;
using tn::softplus;
using tn::softsign;
using tn::tanh;

/// `gelu_tanh`, by MLX's name.
inline Tensor gelu_approx(const Operand& x) { return gelu_tanh(x); }
/// `x * sigmoid(1.702 x)`.
Tensor gelu_fast_approx(const Operand& x);
/// `a * sigmoid(b)`, where `a` and `b` are the halves of `x` along `axis`.
Tensor glu(const Operand& x, Axis axis = -1);
/// `x` where its magnitude exceeds `lambd`, else 0.
Tensor hard_shrink(const Operand& x, double lambd = 0.5);
/// `x`, multiplied by `weight` where it is negative.
Tensor prelu(const Operand& x, const Operand& weight);
/// `relu(x)` squared.
Tensor relu2(const Operand& x);
/// `softmax(-x)`.
Tensor softmin(const Operand& x, Axis axis = -1);
/// `x` shrunk towards 0 by `lambd`; 0 where its magnitude is at most `lambd`.
Tensor softshrink(const Operand& x, double lambd = 0.5);
/// 1 where `x` exceeds `threshold`, else 0.
Tensor step(const Operand& x, double threshold = 0);

}  // namespace tn::nn
