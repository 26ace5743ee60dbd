#include "model/layer.h"
#include "nn/attention.h"
#include "nn/initial.h"
#include "tenon/ops.h"

namespace tn::model {

Tensor all_zeros(const InitialCall& call) { return zeros(call.shape, call.type); }

Block MultiHeadAttention(int64_t dims, int64_t num_heads, const AttentionSettings& settings) {
  Layer layer("MultiHeadAttention");
  layer.size("dims", dims).setting("num_heads", num_heads);
  nn::check_sizes("MultiHeadAttention", {{"num_heads", num_heads}});
  nn::check_divides("MultiHeadAttention", {"num_heads", num_heads}, {{"dims", dims}});
  layer.setting("bias", settings.bias, true).setting("causal", settings.causal, false);
  layer.multiple("inner", 3, "dims")
      .input("input", "batch queries dims")
      .parameter("in_proj_weight", "inner dims",
                 [](const InitialCall& call) {
                   return nn::glorot_uniform(call.shape[0].value(), call.shape[1].value(),
                                             {call.type, call.key});
                 })
      .parameter("out_proj_weight", "dims dims", [](const InitialCall& call) {
        return nn::drawn_uniform(call.shape, call.shape[1].value(), {call.type, call.key});
      });
  if (settings.bias)
    layer.parameter("in_proj_bias", "inner", all_zeros)
        .parameter("out_proj_bias", "dims", all_zeros);
  layer.optional_input("key", "batch keys dims").optional_input("value", "batch keys dims");
  layer.optional_input("mask", "*");
  return layer.computes("batch queries dims", [=](const BlockCall& call) {
    const Tensors& in = call.in;
    size_t key = settings.bias ? 5 : 3;
    Tensor bias = settings.bias ? in[3] : Tensor(), out_bias = settings.bias ? in[4] : Tensor();
    const Tensor& values = in[key + 1] ? in[key + 1] : in[key];
    if (values && !in[key]) fail("a value needs a key to be found by");
    Tensors projected = nn::project_heads(in[0], in[key], values, in[1], bias);
    Tensor heads = nn::attend_heads(projected, num_heads, in[key + 2], settings.causal);
    return linear(heads, in[2], out_bias);
  });
}

}  // namespace tn::model
