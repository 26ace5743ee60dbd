#include "tenon/nn/transformer.h"

#include "ir/place.h"
#include "nn/checks.h"
#include "tenon/operators.h"

namespace tn::nn {

static int64_t hidden_of(int64_t dims, const TransformerSettings& settings) {
  return settings.mlp_dims.value_or(4 * dims);
}

TransformerLayer::TransformerLayer(int64_t dims, int64_t num_heads,
                                   const TransformerSettings& settings, const LocScope&)
    : self_attn(dims, num_heads, {.batch_first = settings.batch_first}),
      linear1(dims, hidden_of(dims, settings)),
      linear2(hidden_of(dims, settings), dims),
      norm1(dims),
      norm2(dims),
      dropout(settings.dropout),
      activation(settings.activation),
      norm_first(settings.norm_first) {}

Tensor TransformerLayer::residual(const Tensor& x, const LayerNorm& norm,
                                  const Callback<Tensor(const Tensor&)>& f) const {
  if (norm_first) return x + dropout(f(norm(x)));
  return norm(x + dropout(f(x)));
}

Tensor TransformerLayer::attended(const Tensor& x, const Tensor& mask, bool causal) const {
  return residual(x, norm1,
                  [&](const Tensor& y) { return self_attn(y, {.mask = mask, .causal = causal}); });
}

Tensor TransformerLayer::perceptron(const Tensor& x, const LayerNorm& norm) const {
  return residual(x, norm, [this](const Tensor& y) {
    Tensor hidden = linear1(y);
    hidden = activation ? activation(hidden) : relu(hidden);
    return linear2(dropout(hidden));
  });
}

TransformerEncoderLayer::TransformerEncoderLayer(int64_t dims, int64_t num_heads,
                                                 const TransformerSettings& settings, Place at)
    : TransformerLayer(dims, num_heads, settings, LocScope(at)) {}

Tensor TransformerEncoderLayer::operator()(const Operand& given, const EncoderCall& call) const {
  return computed(*this, given, [&] {
    return perceptron(attended(taken(given), call.mask, call.causal), norm2);
  });
}

TransformerDecoderLayer::TransformerDecoderLayer(int64_t dims, int64_t num_heads,
                                                 const TransformerSettings& settings, Place at)
    : TransformerLayer(dims, num_heads, settings, LocScope(at)),
      multihead_attn(dims, num_heads, {.batch_first = settings.batch_first}),
      norm3(dims) {}

Tensor TransformerDecoderLayer::operator()(const Operand& given, const Operand& memory,
                                           const DecoderCall& call) const {
  return computed(*this, given, [&] {
    Tensor keys = taken(memory), x = attended(taken(given), call.mask, call.causal);
    x = residual(x, norm2, [&](const Tensor& y) {
      return multihead_attn(y, {.keys = keys, .mask = call.memory_mask});
    });
    return perceptron(x, norm3);
  });
}

template <class Layer>
TransformerStack<Layer>::TransformerStack(std::string_view kind, int num_layers, int64_t dims,
                                          int64_t num_heads, const TransformerSettings& settings,
                                          const Place& at) {
  LocScope scope(at);
  check_sizes(kind, {{"num_layers", num_layers}});
  for (int i = 0; i < num_layers; ++i) layers.emplace_back(dims, num_heads, settings);
  if (settings.final_norm) norm.emplace(dims);
}

TransformerEncoder::TransformerEncoder(int num_layers, int64_t dims, int64_t num_heads,
                                       const TransformerSettings& settings, Place at)
    : TransformerStack("TransformerEncoder", num_layers, dims, num_heads, settings, at) {}

Tensor TransformerEncoder::operator()(const Operand& given, const EncoderCall& call) const {
  return computed(*this, given, [&] {
    Tensor x = taken(given);
    for (const TransformerEncoderLayer& layer : layers) x = layer(x, call);
    return norm ? (*norm)(x) : x;
  });
}

TransformerDecoder::TransformerDecoder(int num_layers, int64_t dims, int64_t num_heads,
                                       const TransformerSettings& settings, Place at)
    : TransformerStack("TransformerDecoder", num_layers, dims, num_heads, settings, at) {}

Tensor TransformerDecoder::operator()(const Operand& given, const Operand& memory,
                                      const DecoderCall& call) const {
  return computed(*this, given, [&] {
    Tensor x = taken(given), keys = taken(memory);
    for (const TransformerDecoderLayer& layer : layers) x = layer(x, keys, call);
    return norm ? (*norm)(x) : x;
  });
}

Transformer::Transformer(int64_t dims, int64_t num_heads, int num_encoder_layers,
                         int num_decoder_layers, const TransformerSettings& settings, Place at)
    : encoder(num_encoder_layers, dims, num_heads, settings, at),
      decoder(num_decoder_layers, dims, num_heads, settings, at) {}

Tensor Transformer::operator()(const Operand& source, const Operand& target,
                               const TransformerCall& call) const {
  return computed(*this, source, [&] {
    Tensor memory = encoder(source, {.mask = call.source_mask});
    return decoder(target, memory, {call.target_mask, call.memory_mask, call.causal});
  });
}

}  // namespace tn::nn
