#include <cmath>

#include "nn/checks.h"
#include "tenon/nn/layers.h"
#include "tenon/operators.h"
#include "tenon/random.h"

namespace tn::nn {
namespace {

int64_t checked_heads(int64_t dims, int64_t num_heads) {
  check_sizes("MultiHeadAttention", {{"dims", dims}, {"num_heads", num_heads}});
  check_divides("MultiHeadAttention", {"num_heads", num_heads}, {{"dims", dims}});
  return num_heads;
}

/// Uniform numbers of standard deviation sqrt(2 / (inputs + outputs)) (Glorot and Bengio, 2010).
Tensor glorot_uniform(int64_t outputs, int64_t inputs) {
  double bound = std::sqrt(3.0) * std::sqrt(2.0 / static_cast<double>(inputs + outputs));
  return random::uniform({outputs, inputs}, -bound, bound);
}

/// Heads of [batch, positions, dims] as [batch, heads, positions, depth].
Tensor parted(const Tensor& x, int64_t heads) {
  return swapaxes(unflatten(x, -1, Shape{heads, -1}), 1, 2);
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(int64_t dims, int64_t num_heads, bool has_bias)
    : num_heads(checked_heads(dims, num_heads)),
      in_proj_weight(glorot_uniform(3 * dims, dims)),
      out_proj(dims, dims, has_bias) {
  if (!has_bias) return;
  in_proj_bias = zeros({3 * dims});
  out_proj.bias = zeros({dims});
}

Tensor MultiHeadAttention::operator()(const Operand& x, const Operand& mask, bool causal) const {
  return computed(*this, x, [&] {
    check_shape("MultiHeadAttention", x, {"batch", "positions", in_proj_weight.dim(-1)});
    // One product instead of three.
    return attend(split(tn::linear(x, in_proj_weight, in_proj_bias), 3, -1), mask, causal);
  });
}

Tensor MultiHeadAttention::operator()(const Operand& queries, const Operand& keys,
                                      const Operand& values, const Operand& mask,
                                      bool causal) const {
  return computed(*this, queries, [&] {
    Tensors weights = split(in_proj_weight, 3);
    Tensors biases = in_proj_bias ? split(in_proj_bias, 3) : Tensors(3);
    Tensors projected;
    for (const Operand* x : {&queries, &keys, &values}) {
      check_shape("MultiHeadAttention", *x, {"batch", "positions", in_proj_weight.dim(-1)});
      size_t i = projected.size();
      projected.push_back(tn::linear(*x, weights[i], biases[i]));
    }
    return attend(projected, mask, causal);
  });
}

Tensor MultiHeadAttention::attend(const Tensors& projected, const Operand& mask,
                                  bool causal) const {
  Tensor q = parted(projected[0], num_heads), k = parted(projected[1], num_heads),
         v = parted(projected[2], num_heads);
  Tensor heads = scaled_dot_product_attention(q, k, v, mask, {}, causal);
  return out_proj(flatten(swapaxes(heads, 1, 2), -2, -1));
}

}  // namespace tn::nn
