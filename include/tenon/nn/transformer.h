#pragma once
// Transformers: layers of attention and a perceptron, with residual connections around both.
//
//     tn::nn::TransformerEncoder encoder(2, 16, 4, {.norm_first = true});
//     tn::Tensor y = encoder(x, {.causal = true});      // x: [batch, positions, 16]
#include <optional>
#include <string_view>
#include <vector>

#include "tenon/nn/layers.h"

namespace tn {
class LocScope;  // src/ir/place.h
}

namespace tn::nn {

struct TransformerSettings {
  Maybe<int64_t> mlp_dims = {};  // features of the hidden layer; default: four times `dims`
  double dropout = 0.1;          // of the results of sublayers and of the hidden layer
  Callback<Tensor(const Tensor&)> activation = {};  // default: relu
  bool norm_first = false;  // sublayers compute `x + f(norm(x))`, not `norm(x + f(x))`
  bool batch_first = true;  // else [positions, batch, dims]
  bool final_norm = true;   // of encoders and decoders: a normalization at the end
};

/// Masks of attention; `causal`: a position attends only to itself and earlier ones.
struct EncoderCall {
  Tensor mask = {};
  bool causal = false;
};
struct DecoderCall {
  Tensor mask = {}, memory_mask = {};
  bool causal = false;
};
struct TransformerCall {
  Tensor source_mask = {}, target_mask = {}, memory_mask = {};
  bool causal = false;
};

/// What layers of encoders and decoders share: self-attention and a perceptron with one hidden
/// layer. Parameters have PyTorch's names.
class TransformerLayer {
 public:
  MultiHeadAttention self_attn;
  Linear linear1, linear2;
  LayerNorm norm1, norm2;
  Dropout dropout;
  Callback<Tensor(const Tensor&)> activation;
  bool norm_first;

  static void fields(auto& m, auto&& f) {
    f("self_attn", m.self_attn), f("linear1", m.linear1), f("linear2", m.linear2);
    f("norm1", m.norm1), f("norm2", m.norm2), f("dropout", m.dropout);
    f("norm_first", m.norm_first);
  }

 protected:
  TransformerLayer(int64_t dims, int64_t num_heads, const TransformerSettings& settings,
                   const LocScope& scope);
  /// `x + f(norm(x))`, or `norm(x + f(x))`.
  Tensor residual(const Tensor& x, const LayerNorm& norm,
                  const Callback<Tensor(const Tensor&)>& f) const;
  Tensor attended(const Tensor& x, const Tensor& mask, bool causal) const;
  /// The second linear layer of the activation of the first.
  Tensor perceptron(const Tensor& x, const LayerNorm& norm) const;
};

class TransformerEncoderLayer : public Module<TransformerEncoderLayer>, public TransformerLayer {
 public:
  TransformerEncoderLayer(int64_t dims, int64_t num_heads, const TransformerSettings& settings = {},
                          Place at = Place::current());
  Tensor operator()(const Operand& x, const EncoderCall& call = {}) const;
  using TransformerLayer::fields;
};

/// A TransformerEncoderLayer that also attends to `memory`, the result of an encoder.
class TransformerDecoderLayer : public Module<TransformerDecoderLayer>, public TransformerLayer {
 public:
  MultiHeadAttention multihead_attn;
  LayerNorm norm3;

  TransformerDecoderLayer(int64_t dims, int64_t num_heads, const TransformerSettings& settings = {},
                          Place at = Place::current());
  Tensor operator()(const Operand& x, const Operand& memory, const DecoderCall& call = {}) const;
  static void fields(auto& m, auto&& f) {
    TransformerLayer::fields(m, f);
    f("multihead_attn", m.multihead_attn), f("norm3", m.norm3);
  }
};

/// Layers one after the other, and a normalization at the end.
template <class Layer>
class TransformerStack {
 public:
  std::vector<Layer> layers;
  std::optional<LayerNorm> norm;

  static void fields(auto& m, auto&& f) { f("layers", m.layers), f("norm", m.norm); }

 protected:
  TransformerStack(std::string_view kind, int num_layers, int64_t dims, int64_t num_heads,
                   const TransformerSettings& settings, const Place& at);
};

class TransformerEncoder : public Module<TransformerEncoder>,
                           public TransformerStack<TransformerEncoderLayer> {
 public:
  TransformerEncoder(int num_layers, int64_t dims, int64_t num_heads,
                     const TransformerSettings& settings = {}, Place at = Place::current());
  Tensor operator()(const Operand& x, const EncoderCall& call = {}) const;
  using TransformerStack::fields;
};

class TransformerDecoder : public Module<TransformerDecoder>,
                           public TransformerStack<TransformerDecoderLayer> {
 public:
  TransformerDecoder(int num_layers, int64_t dims, int64_t num_heads,
                     const TransformerSettings& settings = {}, Place at = Place::current());
  Tensor operator()(const Operand& x, const Operand& memory, const DecoderCall& call = {}) const;
  using TransformerStack::fields;
};

/// An encoder of `source` and a decoder of `target`, both [batch, positions, dims].
class Transformer : public Module<Transformer> {
 public:
  TransformerEncoder encoder;
  TransformerDecoder decoder;

  explicit Transformer(int64_t dims = 512, int64_t num_heads = 8, int num_encoder_layers = 6,
                       int num_decoder_layers = 6, const TransformerSettings& settings = {},
                       Place at = Place::current());
  Tensor operator()(const Operand& source, const Operand& target,
                    const TransformerCall& call = {}) const;
  static void fields(auto& m, auto&& f) { f("encoder", m.encoder), f("decoder", m.decoder); }
};

}  // namespace tn::nn
