#pragma once
// Activations and the loss of classifiers under the names they have in `nn`: functions of tensors,
// and layers of a Sequential.
//
//     nn::Sequential model{nn::Linear(784, 256), nn::relu, nn::Linear(256, 10)};
#include "tenon/aliases.h"
#include "tenon/nn/functions.h"

namespace tn::nn {

using tn::celu;
using tn::cross_entropy;
using tn::elu;
using tn::gelu;
using tn::gelu_approx;
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

}  // namespace tn::nn
