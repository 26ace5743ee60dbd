#include "nn/attention.h"

#include "nn/checks.h"
#include "nn/initial.h"
#include "tenon/nn/attention.h"
#include "tenon/operators.h"

namespace tn::nn {
namespace {

int64_t checked_heads(int64_t dims, int64_t num_heads) {
  check_sizes("MultiHeadAttention", {{"dims", dims}, {"num_heads", num_heads}});
  check_divides("MultiHeadAttention", {"num_heads", num_heads}, {{"dims", dims}});
  return num_heads;
}

/// Heads of [batch, positions, dims] as [batch, heads, positions, depth].
Tensor parted(const Tensor& x, int64_t heads) {
  return swapaxes(unflatten(x, -1, Shape{heads, -1}), 1, 2);
}

}  // namespace

Tensors project_heads(const Tensor& queries, const Tensor& keys, const Tensor& values,
                      const Tensor& weight, const Tensor& bias) {
  // One product instead of three.
  if (!keys) return split(tn::linear(queries, weight, bias), 3, -1);
  Tensors weights = split(weight, 3), biases = bias ? split(bias, 3) : Tensors(3);
  Tensors projected;
  for (const Tensor* x : {&queries, &keys, &values}) {
    size_t i = projected.size();
    projected.push_back(tn::linear(*x, weights[i], biases[i]));
  }
  return projected;
}

Tensor attend_heads(const Tensors& projected, int64_t num_heads, const Operand& mask, bool causal) {
  Tensor q = parted(projected[0], num_heads), k = parted(projected[1], num_heads),
         v = parted(projected[2], num_heads);
  Tensor heads = scaled_dot_product_attention(q, k, v, mask, {}, causal);
  return flatten(swapaxes(heads, 1, 2), -2, -1);
}

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
    return attend(project_heads(taken(x), {}, {}, in_proj_weight, in_proj_bias), mask, causal);
  });
}

Tensor MultiHeadAttention::operator()(const Operand& queries, const Operand& keys,
                                      const Operand& values, const Operand& mask,
                                      bool causal) const {
  return computed(*this, queries, [&] {
    for (const Operand* x : {&queries, &keys, &values})
      check_shape("MultiHeadAttention", *x, {"batch", "positions", in_proj_weight.dim(-1)});
    Tensors projected =
        project_heads(taken(queries), taken(keys), taken(values), in_proj_weight, in_proj_bias);
    return attend(projected, mask, causal);
  });
}

Tensor MultiHeadAttention::attend(const Tensors& projected, const Operand& mask,
                                  bool causal) const {
  return out_proj(attend_heads(projected, num_heads, mask, causal));
}

}  // namespace tn::nn
