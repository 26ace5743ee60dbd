#pragma once
// Attention in several heads, without the parameters around it.
#include "tenon/tensor.h"

namespace tn::nn {

/// Queries, keys and values, [batch, positions, dims], by the weight [3 dims, dims] and the bias,
/// which may be null. Without keys and values the queries are all three.
Tensors project_heads(const Tensor& queries, const Tensor& keys, const Tensor& values,
                      const Tensor& weight, const Tensor& bias);
/// `softmax(q @ k.T / sqrt(depth)) @ v` in heads of depth dims / num_heads, side by side.
Tensor attend_heads(const Tensors& projected, int64_t num_heads, const Operand& mask, bool causal);

}  // namespace tn::nn
