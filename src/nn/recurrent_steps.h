#pragma once
// The next state of recurrent units, from what is linear in the input and in the output before.
#include "tenon/tensor.h"

namespace tn::nn {

Tensors gru_step(const Tensor& inputs, const Tensor& recurrent, const Tensors& state);
/// `state` and the result are the output and the cell.
Tensors lstm_step(const Tensor& inputs, const Tensor& recurrent, const Tensors& state);

}  // namespace tn::nn
