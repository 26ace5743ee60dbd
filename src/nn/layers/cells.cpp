// Recurrent cells: one time step of a recurrent layer, for explicit loops.
#include "ir/sizes.h"
#include "nn/initial.h"
#include "nn/layer_decls.h"
#include "nn/recurrent_steps.h"
#include "tenon/operators.h"

namespace tn::nn {

Tensors gru_step(const Tensor& inputs, const Tensor& recurrent, const Tensors& state) {
  Tensors x = split(inputs, 3, -1), h = split(recurrent, 3, -1);  // reset, update, new
  Tensor update = sigmoid(x[1] + h[1]);
  Tensor fresh = tanh(x[2] + sigmoid(x[0] + h[0]) * h[2]);
  return {(1 - update) * fresh + update * state[0]};
}

Tensors lstm_step(const Tensor& inputs, const Tensor& recurrent, const Tensors& state) {
  Tensors gates = split(inputs + recurrent, 4, -1);  // input, forget, new, output
  Tensor cell = sigmoid(gates[1]) * state[1] + sigmoid(gates[0]) * tanh(gates[2]);
  return {sigmoid(gates[3]) * tanh(cell), cell};
}

namespace layers {
namespace {

struct CellAttrs {
  int64_t input_size = 0, hidden_size = 0;
  bool bias = true;
  static constexpr void fields(auto& a, auto&& f) {
    f("input_size", a.input_size, required), f("hidden_size", a.hidden_size, required);
    f("bias", a.bias);
  }
};

enum class Nonlinearity : uint8_t { tanh, relu };
constexpr std::string_view kNonlinearities[] = {"tanh", "relu"};
constexpr ChoiceNames choice_names(Nonlinearity) { return kNonlinearities; }

struct RnnCellAttrs {
  int64_t input_size = 0, hidden_size = 0;
  bool bias = true;
  Nonlinearity nonlinearity = Nonlinearity::tanh;
  static constexpr void fields(auto& a, auto&& f) {
    f("input_size", a.input_size, required), f("hidden_size", a.hidden_size, required);
    f("bias", a.bias), f("nonlinearity", a.nonlinearity);
  }
};

template <class A>
Tensor by_hidden(const void* attrs, const DrawCall& call) {
  return drawn_uniform(call.shape, static_cast<const A*>(attrs)->hidden_size,
                       {call.type, call.key});
}

/// The state after `x`, of `kStates` tensors; zeros before the first one.
template <int kStates, class A, class F>
Tensors next_state(const A& a, const LayerCall& call, F step) {
  const Tensor& x = call.in[0];
  Shape shape = x.shape();
  shape[shape.rank() - 1] = a.hidden_size;
  Tensors state(call.in.begin() + 1, call.in.end());
  if (!state[0].defined())
    state.assign(kStates, zeros(shape, promote(x.dtype(), call.held[0].dtype()), x.device()));
  for (const Tensor& part : state)
    if (!decide_equal(part.shape(), shape))
      fail("{}: expected a state {}, given {}", call.layer, shape, *type_of(part));
  return step(linear(x, call.held[0], call.held[2]), linear(state[0], call.held[1], call.held[3]),
              state);
}

/// The parameters in which cells differ.
struct CellOf {
  std::string_view name, doc, example, weight_ih, weight_hh, bias;
  int states = 1;
};

template <class A, class F>
constexpr LayerDef cell_layer(const CellOf& of, F forward) {
  List<ResultDef, 2> several{{"state", "... hidden_size", 2, "hidden cell"}};
  return Layer<A>{
      .name = of.name,
      .doc = of.doc,
      .example = of.example,
      .module = "cells",
      .shown = "{input_size} -> {hidden_size}",
      .tensors = {{"weight_ih", of.weight_ih, by_hidden<A>},
                  {"weight_hh", of.weight_hh, by_hidden<A>},
                  {"bias_ih", of.bias, by_hidden<A>, "bias"},
                  {"bias_hh", of.bias, by_hidden<A>, "bias"}},
      .inputs =
          {{"x", "... input_size"},
           {.name = "state", .shape = "... hidden_size", .optional = true, .count = of.states}},
      .output = "... hidden_size",
      .results = of.states > 1 ? several : List<ResultDef, 2>(),
      .forward = forward,
  };
}

}  // namespace

constinit const LayerDef RNNCell = cell_layer<RnnCellAttrs>(
    {
        .name = "RNNCell",
        .doc = "The next `h` of an `RNN` from `x`, [..., input_size], and `h`, zeros by "
               "default.\n\n"
               "Parameters have PyTorch's names: `weight_ih`, `weight_hh`, `bias_ih`, `bias_hh`.",
        .example = R"(>>> cell, h = tn.nn.RNNCell(3, 8), None
>>> for x in tn.zeros((5, 2, 3)):
...     h = cell(x, h)
>>> h.shape
(2, 8)
)",
        .weight_ih = "hidden_size input_size",
        .weight_hh = "hidden_size hidden_size",
        .bias = "hidden_size",
    },
    [](const RnnCellAttrs& a, const LayerCall& call) {
      return next_state<1>(
          a, call, [&](const Tensor& inputs, const Tensor& recurrent, const Tensors&) -> Tensors {
            Tensor sum = inputs + recurrent;
            return {a.nonlinearity == Nonlinearity::relu ? relu(sum) : tanh(sum)};
          });
    });

constinit const LayerDef GRUCell = cell_layer<CellAttrs>(
    {
        .name = "GRUCell",
        .doc = "The next `h` of a `GRU` from `x`, [..., input_size], and `h`, zeros by default.",
        .example = ">>> tn.nn.GRUCell(3, 8)(tn.zeros((2, 3))).shape\n(2, 8)\n",
        .weight_ih = "3*hidden_size input_size",
        .weight_hh = "3*hidden_size hidden_size",
        .bias = "3*hidden_size",
    },
    [](const CellAttrs& a, const LayerCall& call) { return next_state<1>(a, call, gru_step); });

constinit const LayerDef LSTMCell = cell_layer<CellAttrs>(
    {
        .name = "LSTMCell",
        .doc = "The next `(h, c)` of an `LSTM` from `x`, [..., input_size], and the pair, zeros by "
               "default.",
        .example = R"(>>> h, c = tn.nn.LSTMCell(3, 8)(tn.zeros((2, 3)))
>>> h.shape, c.shape
((2, 8), (2, 8))
)",
        .weight_ih = "4*hidden_size input_size",
        .weight_hh = "4*hidden_size hidden_size",
        .bias = "4*hidden_size",
        .states = 2,
    },
    [](const CellAttrs& a, const LayerCall& call) { return next_state<2>(a, call, lstm_step); });

}  // namespace layers
}  // namespace tn::nn
