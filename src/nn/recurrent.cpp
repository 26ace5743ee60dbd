#include "tenon/nn/recurrent.h"

#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/place.h"
#include "ir/sizes.h"
#include "nn/checks.h"
#include "nn/initial.h"
#include "nn/recurrent_steps.h"
#include "tenon/flat.h"
#include "tenon/operators.h"

namespace tn::nn {

Recurrent::Recurrent(std::string_view kind, int gates, int64_t input_size, int64_t hidden_size,
                     const RecurrentSettings& settings, const Place& at)
    : input_size(input_size), hidden_size(hidden_size), settings(settings), kind_(kind) {
  LocScope scope(at);
  check_sizes(kind, {{"input_size", input_size},
                     {"hidden_size", hidden_size},
                     {"num_layers", settings.num_layers}});
  if (!(settings.dropout >= 0 && settings.dropout <= 1))
    fail("{}: dropout is a probability, not {}", kind, settings.dropout);
  int64_t rows = gates * hidden_size, directions = settings.bidirectional ? 2 : 1;
  for (int layer = 0; layer < settings.num_layers; ++layer) {
    int64_t inputs = layer == 0 ? input_size : hidden_size * directions;
    for (const std::string& suffix : suffixes(layer)) {
      auto draw = [&](std::string_view name, const Shape& shape) {
        weights[std::string(name) + suffix] = drawn_uniform(shape, hidden_size);
      };
      draw("weight_ih", {rows, inputs}), draw("weight_hh", {rows, hidden_size});
      if (settings.bias) draw("bias_ih", {rows}), draw("bias_hh", {rows});
    }
  }
}

/// The ends of the parameters' names: one for each direction.
std::vector<std::string> Recurrent::suffixes(int layer) const {
  std::string first = format("_l{}", layer);
  if (!settings.bidirectional) return {first};
  return {first, first + "_reverse"};
}

/// The initial states, by layer and direction.
Tensors Recurrent::first_states(const Tensor& x, const Tensors& state, int states) const {
  int64_t count = settings.num_layers * (settings.bidirectional ? 2 : 1);
  Shape shape = x.shape();
  shape.erase(shape.rank() - 2);
  shape[shape.rank() - 1] = hidden_size;
  shape.insert(0, count);
  if (state.empty() || (state.size() == 1 && !state[0].defined())) {
    DType type = promote(x.dtype(), weights.at("weight_ih_l0").dtype());
    return Tensors(static_cast<size_t>(states), zeros(shape, type, x.device()));
  }
  if (state.size() != static_cast<size_t>(states))
    fail(Fault::type, "{}: a state is {} tensors, given {}", kind_, states, state.size());
  for (const Tensor& part : state)
    if (!part.defined() || !decide_equal(part.shape(), shape))
      fail("{}: expected a state {}, given {}", kind_, shape,
           part.defined() ? to_text(*type_of(part)) : "none");
  return state;
}

/// One direction of one layer: the outputs at all positions and the parts of the last state.
Tensors Recurrent::one_direction(const Tensor& x, const Tensors& first, const std::string& suffix,
                                 const Step& step) const {
  auto weight = [&](std::string_view name) {
    auto found = weights.find(std::string(name) + suffix);
    return found == weights.end() ? Tensor() : found->second;
  };
  Tensor weight_hh = weight("weight_hh"), bias_hh = weight("bias_hh");
  Tensor inputs = linear(x, weight("weight_ih"), weight("bias_ih"));
  auto body = [&](const Tensors& state, const Tensors& here) {
    Tensors next = step(here[0], linear(state[0], weight_hh, bias_hh), state);
    // The gates may be of another type, as in mixed precision.
    for (size_t i = 0; i < next.size(); ++i) next[i] = astype(next[i], state[i].dtype());
    return flat::ScanResult{next, {next[0]}};
  };
  bool reverse = suffix.ends_with("reverse");
  auto [end, outputs] = flat::scan(body, first, {moveaxis(inputs, -2, 0)}, {}, reverse);
  end.insert(end.begin(), moveaxis(outputs[0], 0, -2));
  return std::move(end);
}

/// Over [..., length, input_size].
Tensors Recurrent::all_layers(Tensor x, const Tensors& first, bool training,
                              const Step& step) const {
  std::vector<Tensors> last(first.size());
  for (int layer = 0; layer < settings.num_layers; ++layer) {
    if (layer > 0 && training && settings.dropout > 0)
      x = tn::dropout(x, nullptr, settings.dropout);
    Tensors outputs;
    for (const std::string& suffix : suffixes(layer)) {
      Tensors begin;
      auto number = static_cast<int64_t>(last[0].size());
      for (const Tensor& part : first) begin.push_back(index(part, {number}));
      Tensors made = one_direction(x, begin, suffix, step);
      outputs.push_back(made[0]);
      for (size_t i = 0; i < last.size(); ++i) last[i].push_back(made[i + 1]);
    }
    x = outputs.size() == 1 ? outputs[0] : concat(outputs, -1);
  }
  Tensors made = {x};
  for (const Tensors& ends : last) made.push_back(stack(ends));
  return made;
}

Tensors Recurrent::run(const Operand& given, const Tensors& state, bool training, int states,
                       const Step& step) const {
  Tensor x = taken(given);
  bool moves = !settings.batch_first && x.rank() > 2;
  if (moves) {
    check_shape(kind_, x, {"length", "...", input_size});
    x = moveaxis(x, 0, -2);
  }
  check_shape(kind_, x, {"...", "length", input_size});
  Tensors made = all_layers(x, first_states(x, state, states), training, step);
  if (moves) made[0] = moveaxis(made[0], -2, 0);
  return made;
}

RNN::RNN(int64_t input_size, int64_t hidden_size, const RecurrentSettings& settings,
         Callback<Tensor(const Tensor&)> nonlinearity, Place at)
    : Recurrent("RNN", 1, input_size, hidden_size, settings, at),
      nonlinearity(std::move(nonlinearity)) {}

RecurrentResult RNN::operator()(const Operand& x, const Tensor& state) const {
  auto step = [this](const Tensor& inputs, const Tensor& recurrent, const Tensors&) -> Tensors {
    Tensor sum = inputs + recurrent;
    return {nonlinearity ? nonlinearity(sum) : tanh(sum)};
  };
  return computed(*this, x, [&]() -> RecurrentResult {
    Tensors made = run(x, {state}, training, 1, step);
    return {made[0], made[1]};
  });
}

GRU::GRU(int64_t input_size, int64_t hidden_size, const RecurrentSettings& settings, Place at)
    : Recurrent("GRU", 3, input_size, hidden_size, settings, at) {}

RecurrentResult GRU::operator()(const Operand& x, const Tensor& state) const {
  return computed(*this, x, [&]() -> RecurrentResult {
    Tensors made = run(x, {state}, training, 1, gru_step);
    return {made[0], made[1]};
  });
}

LSTM::LSTM(int64_t input_size, int64_t hidden_size, const RecurrentSettings& settings, Place at)
    : Recurrent("LSTM", 4, input_size, hidden_size, settings, at) {}

LSTMResult LSTM::operator()(const Operand& x, const Tensors& state) const {
  return computed(*this, x, [&]() -> LSTMResult {
    Tensors made = run(x, state, training, 2, lstm_step);
    return {made[0], {made[1], made[2]}};
  });
}

}  // namespace tn::nn
