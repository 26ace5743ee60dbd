#include "tenon/nn/transformer.h"

#include "nn/checks.h"
#include "tenon/operators.h"

namespace tn::nn {

namespace {

int64_t hidden_of(int64_t dims, const TransformerSettings& settings) {
  return settings.mlp_dims.value_or(4 * dims);
}

/// `x + f(norm(x))`, or the norm of the sum.
template <class L, class F>
Tensor residual(const L& layer, const Tensor& x, const LayerNorm& norm, F f) {
  if (layer.norm_first) return x + layer.dropout(f(norm(x)));
  return norm(x + layer.dropout(f(x)));
}

template <class L>
Tensor perceptron(const L& layer, const Tensor& x) {
  Tensor hidden = layer.linear1(x);
  hidden = layer.activation ? layer.activation(hidden) : relu(hidden);
  return layer.linear2(layer.dropout(hidden));
}

void check_layers(std::string_view kind, int num_layers) {
  check_sizes(kind, {{"num_layers", num_layers}});
}

}  // namespace

TransformerEncoderLayer::TransformerEncoderLayer(int64_t dims, int64_t num_heads,
                                                 const TransformerSettings& settings)
    : self_attn(dims, num_heads, {.batch_first = settings.batch_first}),
      linear1(dims, hidden_of(dims, settings)),
      linear2(hidden_of(dims, settings), dims),
      norm1(dims),
      norm2(dims),
      dropout(settings.dropout),
      activation(settings.activation),
      norm_first(settings.norm_first) {}

Tensor TransformerEncoderLayer::operator()(const Operand& given, const EncoderCall& call) const {
  return computed(*this, given, [&] {
    auto attend = [&](const Tensor& x) {
      return self_attn(x, {.mask = call.mask, .causal = call.causal});
    };
    Tensor x = residual(*this, taken(given), norm1, attend);
    return residual(*this, x, norm2, [this](const Tensor& y) { return perceptron(*this, y); });
  });
}

TransformerDecoderLayer::TransformerDecoderLayer(int64_t dims, int64_t num_heads,
                                                 const TransformerSettings& settings)
    : self_attn(dims, num_heads, {.batch_first = settings.batch_first}),
      linear1(dims, hidden_of(dims, settings)),
      linear2(hidden_of(dims, settings), dims),
      norm1(dims),
      norm2(dims),
      dropout(settings.dropout),
      multihead_attn(dims, num_heads, {.batch_first = settings.batch_first}),
      norm3(dims),
      activation(settings.activation),
      norm_first(settings.norm_first) {}

Tensor TransformerDecoderLayer::operator()(const Operand& given, const Operand& memory,
                                           const DecoderCall& call) const {
  return computed(*this, given, [&] {
    Tensor keys = taken(memory);
    auto attend = [&](const Tensor& x) {
      return self_attn(x, {.mask = call.mask, .causal = call.causal});
    };
    auto attend_to_memory = [&](const Tensor& x) {
      return multihead_attn(x, {.keys = keys, .mask = call.memory_mask});
    };
    Tensor x = residual(*this, taken(given), norm1, attend);
    x = residual(*this, x, norm2, attend_to_memory);
    return residual(*this, x, norm3, [this](const Tensor& y) { return perceptron(*this, y); });
  });
}

TransformerEncoder::TransformerEncoder(int num_layers, int64_t dims, int64_t num_heads,
                                       const TransformerSettings& settings) {
  check_layers("TransformerEncoder", num_layers);
  for (int i = 0; i < num_layers; ++i) layers.emplace_back(dims, num_heads, settings);
  if (settings.final_norm) norm.emplace(dims);
}

Tensor TransformerEncoder::operator()(const Operand& given, const EncoderCall& call) const {
  return computed(*this, given, [&] {
    Tensor x = taken(given);
    for (const TransformerEncoderLayer& layer : layers) x = layer(x, call);
    return norm ? (*norm)(x) : x;
  });
}

TransformerDecoder::TransformerDecoder(int num_layers, int64_t dims, int64_t num_heads,
                                       const TransformerSettings& settings) {
  check_layers("TransformerDecoder", num_layers);
  for (int i = 0; i < num_layers; ++i) layers.emplace_back(dims, num_heads, settings);
  if (settings.final_norm) norm.emplace(dims);
}

Tensor TransformerDecoder::operator()(const Operand& given, const Operand& memory,
                                      const DecoderCall& call) const {
  return computed(*this, given, [&] {
    Tensor x = taken(given), keys = taken(memory);
    for (const TransformerDecoderLayer& layer : layers) x = layer(x, keys, call);
    return norm ? (*norm)(x) : x;
  });
}

Transformer::Transformer(int64_t dims, int64_t num_heads, int num_encoder_layers,
                         int num_decoder_layers, const TransformerSettings& settings)
    : encoder(num_encoder_layers, dims, num_heads, settings),
      decoder(num_decoder_layers, dims, num_heads, settings) {}

Tensor Transformer::operator()(const Operand& source, const Operand& target,
                               const TransformerCall& call) const {
  return computed(*this, source, [&] {
    Tensor memory = encoder(source, {.mask = call.source_mask});
    return decoder(target, memory, {call.target_mask, call.memory_mask, call.causal});
  });
}

}  // namespace tn::nn
