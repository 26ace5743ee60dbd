// Training in C++: gradients of models, optimizers, compiled steps that change state in place.
#include <doctest/doctest.h>

#include "errors.h"
#include "runtime/memory.h"
#include "tenon/nn.h"
#include "tenon/optim.h"
#include "tenon/tenon.h"

using namespace tn;

namespace {

struct Perceptron : nn::Module<Perceptron> {
  nn::Linear hidden{2, 16}, out{16, 3};
  nn::Dropout dropout{0.25};

  Tensor forward(const Tensor& x) const { return out(dropout(tn::tanh(hidden(x)))); }
  static void fields(auto& m, auto&& f) {
    f("hidden", m.hidden), f("out", m.out), f("dropout", m.dropout);
  }
};

Tensor inputs() { return reshape(linspace(-1, 1, 40), {20, 2}); }
Tensor classes() { return remainder(arange(20), 3); }

template <class M>
std::vector<std::vector<float>> values(const M& holder) {
  std::vector<std::vector<float>> out;
  for (const auto& [name, t] : holder.state_dict())
    out.push_back(astype(t, DType::f32).template to_vector<float>());
  return out;
}

}  // namespace

TEST_CASE("gradients of a model are those of its parameters as arguments") {
  Perceptron model;
  model.eval();
  auto loss_of = [&](const Tensor& x, const Tensor& y) { return cross_entropy(model(x), y); };
  auto [loss, gradients] = nn::value_and_grad(model, loss_of)(inputs(), classes());
  CHECK(gradients.size() == 4);
  Function plain = [&](const Tensors& p) {
    Tensor h = tn::tanh(linear(inputs(), p[0], p[1]));
    return Tensors{cross_entropy(linear(h, p[2], p[3]), classes())};
  };
  Derivatives want = tn::value_and_grad(plain, {0, 1, 2, 3})(
      {model.hidden.weight, model.hidden.bias, model.out.weight, model.out.bias});
  CHECK(loss.item<float>() == want.values[0].item<float>());
  CHECK(gradients["hidden.weight"].to_vector<float>() == want.derivatives[0].to_vector<float>());
  CHECK(gradients["out.bias"].to_vector<float>() == want.derivatives[3].to_vector<float>());

  model.hidden.freeze();
  auto [again, fewer] = nn::value_and_grad(model, loss_of)(inputs(), classes());
  CHECK(fewer.size() == 2);
  model.freeze();
  CHECK(error_in([&] { nn::value_and_grad(model, loss_of)(inputs(), classes()); }) ==
        "value_and_grad: the model has no trainable parameters");
}

template <class O>
static void check_compiled_step(O optimizer) {
  random::seed(3);
  Perceptron model;
  Perceptron plain = model;
  O plain_optimizer = optimizer;
  int runs = 0;
  auto step_of = [&runs](Perceptron& m, O& o) {
    return [&](const Tensor& x, const Tensor& y) {
      ++runs;
      auto loss_of = [&] { return cross_entropy(m(x), y); };
      auto [loss, gradients] = nn::value_and_grad(m, loss_of)();
      o.update(m, gradients);
      return loss;
    };
  };
  auto eager = step_of(plain, plain_optimizer);
  auto compiled = compile(step_of(model, optimizer), std::tie(model, optimizer));
  std::vector<float> want, got;
  random::seed(5);
  for (int i = 0; i < 6; ++i) want.push_back(eager(inputs(), classes()).template item<float>());
  Tensor key = random::state();
  random::seed(5);
  runs = 0;
  for (int i = 0; i < 6; ++i) got.push_back(compiled(inputs(), classes()).template item<float>());
  CHECK(got == want);
  CHECK(values(model) == values(plain));
  CHECK(values(optimizer) == values(plain_optimizer));
  CHECK(random::state().to_vector<uint32_t>() == key.to_vector<uint32_t>());
  CHECK(runs <= 3);
  CHECK(compiled.stats().hits >= 4);
}

TEST_CASE("a compiled step has the bits of the plain one and changes the state") {
  check_compiled_step(optim::SGD(0.1));
  check_compiled_step(optim::SGD(0.1, {.momentum = 0.9, .weight_decay = 0.01, .nesterov = true}));
  check_compiled_step(optim::Adam(0.01));
  check_compiled_step(optim::AdamW([](const Tensor& step) { return 0.01 / (1 + step); }));
}

TEST_CASE("a compiled step takes the memory of the old state") {
  constexpr int64_t kSize = 1 << 18, kBytes = 4 * kSize;
  nn::RMSNorm model(kSize);
  optim::Adam optimizer(0.01);
  optimizer.init(model.trainable_parameters());
  auto step = compile(
      [&](const Tensor& x) {
        auto [loss, gradients] =
            nn::value_and_grad(model, [&] { return sum(square(model.weight - x)); })();
        optimizer.update(model, gradients);
        return loss;
      },
      std::tie(model, optimizer));
  Tensor x = random::normal({kSize});
  step(x);
  int64_t before = active_memory();
  reset_peak_memory();
  step(x);
  CHECK(step.stats().traces == 1);
  CHECK(active_memory() == before);
  CHECK(peak_memory() - before < 2 * kBytes);  // parameters and two moments would be 3
}

TEST_CASE("a compiled step follows modes, settings and what is frozen") {
  Perceptron model;
  optim::SGD optimizer(0.1);
  auto step = compile(
      [&](const Tensor& x, const Tensor& y) {
        auto [loss, gradients] =
            nn::value_and_grad(model, [&] { return cross_entropy(model(x), y); })();
        optimizer.update(model, gradients);
        return loss;
      },
      std::tie(model, optimizer));
  model.eval();
  float plain = cross_entropy(model(inputs()), classes()).item<float>();
  CHECK(step(inputs(), classes()).item<float>() == doctest::Approx(plain));
  std::vector<float> hidden = model.hidden.weight.to_vector<float>();
  model.hidden.freeze();
  step(inputs(), classes());
  CHECK(model.hidden.weight.to_vector<float>() == hidden);
  model.hidden.unfreeze();
  step(inputs(), classes());
  CHECK(model.hidden.weight.to_vector<float>() != hidden);
  CHECK(step.stats().traces == 2);
  optimizer.set_learning_rate(0.0);
  hidden = model.hidden.weight.to_vector<float>();
  step(inputs(), classes());
  CHECK(model.hidden.weight.to_vector<float>() == hidden);
  model.train().dropout.p = 0.75;
  step(inputs(), classes());
  CHECK(step.stats().traces == 3);
}

TEST_CASE("a step that fails leaves the state as it was") {
  Perceptron model;
  optim::Adam optimizer(0.1);
  auto step = compile(
      [&](const Tensor& x) {
        auto [loss, gradients] = nn::value_and_grad(model, [&] { return mean(model(x)); })();
        optimizer.update(model, gradients);
        return loss;
      },
      std::tie(model, optimizer));
  auto before = values(model);
  CHECK(contains(error_in([&] { step(ones({4, 3})); }), "model.hidden: Linear: expected [..., 2]"));
  CHECK(values(model) == before);
  CHECK(optimizer.state_dict().size() == 2);
  step(ones({4, 2})), step(ones({4, 2}));
  before = values(model);
  CHECK(error_in([&] { step(ones({4, 3})); }) != "");
  CHECK(values(model) == before);
  CHECK(optimizer.step().item<int>() == 2);
}

TEST_CASE("what an optimizer remembers can be carried over") {
  Perceptron model;
  model.eval();
  auto train = [](Perceptron& m, optim::Optimizer& o) {
    auto [loss, gradients] =
        nn::value_and_grad(m, [&] { return cross_entropy(m(inputs()), classes()); })();
    o.update(m, gradients);
  };
  optim::AdamW first(0.01);
  train(model, first), train(model, first);
  Perceptron copy = model;
  optim::AdamW second(1.0);
  second.load_state_dict(first.state_dict());
  train(model, first), train(copy, second);
  CHECK(values(model) == values(copy));
  CHECK(values(first) == values(second));
  CHECK(first.state_dict().contains("moments.hidden.weight.m"));
  CHECK(error_in([&] {
          second.load_state_dict({{"nope", ones({1})}});
        }) == "load_state_dict: an optimizer has no nope");
  CHECK(contains(error_in([&] {
                   first.update(model, {{"nope", ones({1})}});
                 }),
                 "update: the model has no nope"));
  CHECK(contains(error_in([&] {
                   first.update(model, {{"out.bias", ones({4})}});
                 }),
                 "update: the gradient of out.bias is f32[4], the parameter f32[3]"));
}
