#pragma once
// Attention in several heads.
#include "tenon/nn/layers.h"

namespace tn::nn {

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
