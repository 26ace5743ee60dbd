#pragma once
// Activations and the loss of classifiers under the names they have in `nn`: functions of tensors,
// and layers of a Sequential.
//
//     nn::Sequential model{nn::Linear(784, 256), nn::relu, nn::Linear(256, 10)};
#include "tenon/ops.h"

namespace tn::nn {

using tn::relu;
using tn::gelu;
using tn::silu;
using tn::sigmoid;
using tn::tanh;
using tn::softmax;
using tn::log_softmax;
using tn::elu;
using tn::selu;
using tn::celu;
using tn::softplus;
using tn::softsign;
using tn::mish;
using tn::leaky_relu;
using tn::relu6;
using tn::hardswish;
using tn::cross_entropy;
using tn::log_sigmoid;

}  // namespace tn::nn
