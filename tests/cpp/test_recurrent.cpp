// Recurrent layers, transformers and small layers in C++: names, shapes, values, errors.
#include <doctest/doctest.h>

#include "errors.h"
#include "tenon/nn.h"
#include "tenon/tenon.h"

using namespace tn;

namespace {

std::vector<std::string> names(const nn::TensorMap& tensors) {
  std::vector<std::string> out;
  for (const auto& [name, t] : tensors) out.push_back(name);
  return out;
}

bool close(const Tensor& x, const Tensor& y) { return allclose(x, y).item<bool>(); }

}  // namespace

TEST_CASE("recurrent layers have PyTorch's names") {
  CHECK(names(nn::LSTM(3, 4, {.num_layers = 2, .bias = false}).state_dict()) ==
        std::vector<std::string>{"weight_hh_l0", "weight_hh_l1", "weight_ih_l0", "weight_ih_l1"});
  nn::TensorMap both = nn::GRU(3, 4, {.num_layers = 2, .bidirectional = true}).state_dict();
  CHECK(both.size() == 16);
  CHECK(both.at("weight_ih_l1_reverse").shape() == Shape{12, 8});
}

TEST_CASE("a recurrent layer is its cell at every position") {
  random::seed(0);
  nn::LSTM lstm(3, 4);
  nn::LSTMCell cell(3, 4);
  for (std::string name : {"weight_ih", "weight_hh", "bias_ih", "bias_hh"})
    cell.update({{name, lstm.weights.at(name + "_l0")}});
  Tensor x = random::normal({2, 5, 3});
  auto [outputs, state] = lstm(x);
  Tensors each;
  for (int i = 0; i < 5; ++i) each = cell(x[{all, i}], each);
  CHECK(outputs.shape() == Shape{2, 5, 4});
  CHECK(state[1].shape() == Shape{1, 2, 4});
  CHECK(close(outputs[{all, -1}], each[0]));
  CHECK(close(state[1][0], each[1]));
  // The state goes on where it ended.
  auto [first, middle] = lstm(x[{all, slice(none, 2)}]);
  auto [second, end] = lstm(x[{all, slice(2, none)}], middle);
  CHECK(close(concat({first, second}, 1), outputs));
  CHECK(close(end[0], state[0]));
}

TEST_CASE("directions, layers, dropout and the order of axes") {
  random::seed(1);
  nn::RNN rnn(3, 4, {.num_layers = 2, .dropout = 0.5, .bidirectional = true}, nn::relu);
  Tensor x = random::normal({2, 5, 3});
  auto [outputs, state] = rnn(x);
  CHECK(outputs.shape() == Shape{2, 5, 8});
  CHECK(state.shape() == Shape{4, 2, 4});
  CHECK(min(outputs).item<float>() >= 0);
  rnn.eval();
  Tensor usual = rnn(x).outputs;
  rnn.settings.batch_first = false;
  CHECK(close(moveaxis(rnn(moveaxis(x, 1, 0)).outputs, 0, 1), usual));
  nn::GRU gru(3, 4);
  Tensor loss = sum(gru(x).outputs);
  CHECK(grad([&](nn::GRU g) { return sum(g(x).outputs); })(gru).weights.size() == 4);
  CHECK(compile([&](Tensor y) { return gru(y).outputs; })(x).shape() == Shape{2, 5, 4});
}

TEST_CASE("errors of recurrent layers name what is wrong") {
  CHECK(contains(error_in([] { nn::GRU(3, 4, {.dropout = 2}); }), "GRU: dropout is a probability"));
  nn::LSTM lstm(3, 4);
  CHECK(contains(error_in([&] { lstm(zeros({2, 5, 4})); }), "LSTM: expected [..., length, 3]"));
  CHECK(contains(error_in([&] { lstm(zeros({2, 5, 3}), {zeros({1, 2, 4})}); }),
                 "LSTM: a state is 2 tensors, given 1"));
  CHECK(contains(error_in([&] { nn::GRU(3, 4)(zeros({2, 5, 3}), zeros({2, 4})); }),
                 "GRU: expected a state [1,2,4], given f32[2,4]"));
  CHECK(contains(error_in([] { Callback<Tensor()>()(); }), "an empty tn::Callback was called"));
}

TEST_CASE("transformers have PyTorch's names, and a decoder reads its memory") {
  random::seed(2);
  nn::Transformer model(8, 2, 1, 1, {.mlp_dims = 16, .dropout = 0.0, .norm_first = true});
  nn::TensorMap state = model.state_dict();
  for (std::string name : {"encoder.layers.0.self_attn.in_proj_weight", "encoder.norm.weight",
                           "decoder.layers.0.multihead_attn.out_proj.bias",
                           "decoder.layers.0.norm3.bias", "decoder.layers.0.linear1.weight"})
    CHECK(state.contains(name));
  Tensor source = random::normal({2, 7, 8}), target = random::normal({2, 5, 8});
  Tensor y = model(source, target, {.causal = true});
  CHECK(y.shape() == Shape{2, 5, 8});
  CHECK(!close(y, model(source * 2, target, {.causal = true})));
  Tensor cut = model(source, target[{all, slice(none, 3)}], {.causal = true});
  CHECK(close(y[{all, slice(none, 3)}], cut));
  nn::TransformerEncoder plain(2, 8, 2, {.activation = nn::gelu, .final_norm = false});
  CHECK(!plain.state_dict().contains("norm.weight"));
  CHECK(plain.eval()(source, {.causal = true}).shape() == Shape{2, 7, 8});
  CHECK(contains(error_in([] { nn::TransformerEncoder(0, 8, 2); }), "num_layers"));
}

TEST_CASE("identity, learned slopes and resizing") {
  Tensor x = array({-2.0, 3.0});
  CHECK(nn::Identity()(x).to_vector<double>() == x.to_vector<double>());
  CHECK(nn::PReLU()(astype(x, float32)).to_vector<float>() == std::vector<float>{-0.5, 3});
  nn::PReLU two(2);
  two.weight = array({0.0f, 1.0f});
  CHECK(two(full({1, 2, 1}, -1.0)).to_vector<float>() == std::vector<float>{0, -1});
  CHECK(contains(error_in([&] { two(zeros({1, 3})); }), "PReLU: expected [batch, 2, ...]"));
  Tensor image = reshape(array({1.0f, 2.0f}), {1, 1, 2});
  nn::Upsample twice({.scale_factor = {2}});
  CHECK(twice(image).to_vector<float>() == std::vector<float>{1, 1, 2, 2});
  CHECK(nn::Upsample({.scale_factor = {2, 3}})(zeros({1, 1, 2, 2})).shape() == Shape{1, 1, 4, 6});
  CHECK(contains(error_in([&] { nn::Upsample({.scale_factor = {2, 3}})(image); }),
                 "Upsample: 2 scale factors for 1 spatial axes"));
  CHECK(contains(error_in([] { nn::Upsample({}); }), "give either size or scale_factor"));
  nn::Sequential model{nn::Linear(2, 4), nn::PReLU(), nn::Identity()};
  CHECK(model.state_dict().contains("layers.1.weight"));
}
