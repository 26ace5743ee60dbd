#pragma once
// Recurrent layers: RNN, GRU and LSTM over the positions of a sequence.
//
//     tn::nn::LSTM lstm(3, 8, {.num_layers = 2});
//     auto [outputs, state] = lstm(x);             // x: [batch, length, 3]
#include "tenon/nn/module.h"

namespace tn::nn {

struct RecurrentSettings {
  int num_layers = 1;
  bool bias = true;
  double dropout = 0;          // between layers, in training
  bool bidirectional = false;  // half of the features are computed from the end
  bool batch_first = true;     // else [length, ..., input_size], PyTorch's default
};

/// `outputs` of the last layer at all positions, [..., length, hidden_size], and the last `state`
/// of all layers and directions, [num_layers * directions, ..., hidden_size].
struct RecurrentResult {
  Tensor outputs, state;
  static void fields(auto& r, auto&& f) { f("outputs", r.outputs), f("state", r.state); }
};
/// The state is `{hidden, cell}`.
struct LSTMResult {
  Tensor outputs;
  Tensors state;
  static void fields(auto& r, auto&& f) { f("outputs", r.outputs), f("state", r.state); }
};

/// What recurrent layers share: weights, stacking and directions.
class Recurrent {
 public:
  int64_t input_size, hidden_size;
  RecurrentSettings settings;
  /// By PyTorch's names: "weight_ih_l0" ... "bias_hh_l1_reverse".
  TensorMap weights;

  static void fields(auto& m, auto&& f) {
    for (auto& [name, weight] : m.weights) f(name, weight);
    f("input_size", m.input_size), f("hidden_size", m.hidden_size);
    f("num_layers", m.settings.num_layers), f("dropout", m.settings.dropout);
    f("bidirectional", m.settings.bidirectional), f("batch_first", m.settings.batch_first);
  }

 protected:
  /// How the state at one position follows from the one before. `inputs` and `recurrent` are linear
  /// in the input and in the output.
  using Step =
      Callback<Tensors(const Tensor& inputs, const Tensor& recurrent, const Tensors& state)>;

  /// `kind` is the name of the layer, and its weights have `gates * hidden_size` rows.
  Recurrent(std::string_view kind, int gates, int64_t input_size, int64_t hidden_size,
            const RecurrentSettings& settings, const Place& at);
  /// The outputs, and then the parts of the state.
  Tensors run(const Operand& x, const Tensors& state, bool training, int states,
              const Step& step) const;

 private:
  std::vector<std::string> suffixes(int layer) const;
  Tensors first_states(const Tensor& x, const Tensors& state, int states) const;
  Tensors all_layers(Tensor x, const Tensors& first, bool training, const Step& step) const;
  Tensors one_direction(const Tensor& x, const Tensors& first, const std::string& suffix,
                        const Step& step) const;
  std::string_view kind_;
};

/// `h = nonlinearity(W_ih x + b_ih + W_hh h + b_hh)` at each position of [..., length, input_size].
/// The state, zero by default, has the shape of the one that is returned.
class RNN : public Module<RNN>, public Recurrent {
 public:
  /// Any function of a tensor.
  Callback<Tensor(const Tensor&)> nonlinearity;

  RNN(int64_t input_size, int64_t hidden_size, const RecurrentSettings& settings = {},
      Callback<Tensor(const Tensor&)> nonlinearity = {},  // default: tanh
      Place at = Place::current());
  RecurrentResult operator()(const Operand& x, const Tensor& state = {}) const;
  using Recurrent::fields;
};

/// Gated recurrent units: `h = (1 - z) * n + z * h`, with `r` and `z` sigmoids of linear functions
/// of `x` and `h`, and `n = tanh(W_in x + b_in + r * (W_hn h + b_hn))`.
class GRU : public Module<GRU>, public Recurrent {
 public:
  GRU(int64_t input_size, int64_t hidden_size, const RecurrentSettings& settings = {},
      Place at = Place::current());
  RecurrentResult operator()(const Operand& x, const Tensor& state = {}) const;
  using Recurrent::fields;
};

/// Long short-term memory: `c = f * c + i * g` and `h = o * tanh(c)` at each position, with `i`,
/// `f` and `o` sigmoids and `g` the tanh of linear functions of `x` and `h`.
class LSTM : public Module<LSTM>, public Recurrent {
 public:
  LSTM(int64_t input_size, int64_t hidden_size, const RecurrentSettings& settings = {},
       Place at = Place::current());
  /// `state` is `{hidden, cell}`, or empty.
  LSTMResult operator()(const Operand& x, const Tensors& state = {}) const;
  using Recurrent::fields;
};

}  // namespace tn::nn
