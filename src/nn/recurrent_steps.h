#pragma once
// The next state of recurrent units, from linear functions of the input and of the last output.
#include "tenon/tensor.h"

namespace tn::nn {

Tensors gru_step(const Tensor& inputs, const Tensor& recurrent, const Tensors& state);
/// `state` and the result are the output and the cell.
Tensors lstm_step(const Tensor& inputs, const Tensor& recurrent, const Tensors& state);

}  // namespace tn::nn
