// Training in C++: gradients of models, optimizers, compiled steps that change state in place.
#include <doctest/doctest.h>

#include "errors.h"
#include "files.h"
#include "nn/optimizer_def.h"
#include "runtime/memory_use.h"
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
  auto [value, want] = tn::value_and_grad(plain)(
      {model.hidden.weight, model.hidden.bias, model.out.weight, model.out.bias});
  CHECK(loss.item<float>() == value[0].item<float>());
  CHECK(gradients["hidden.weight"].to_vector<float>() == want[0].to_vector<float>());
  CHECK(gradients["out.bias"].to_vector<float>() == want[3].to_vector<float>());

  model.hidden.freeze();
  auto [again, fewer] = nn::value_and_grad(model, loss_of)(inputs(), classes());
  CHECK(fewer.size() == 2);
  model.freeze();
  std::string error = error_in([&] { nn::value_and_grad(model, loss_of)(inputs(), classes()); });
  CHECK(error.starts_with("value_and_grad: the model has no trainable parameters\n"));
  CHECK(contains(error, "test_optim.cpp"));
}

/// A parameter after three gradients.
static void check_three_steps(optim::Optimizer&& optimizer, const std::vector<double>& want) {
  nn::TensorMap w{{"w", array<double>({1.0, -2.0, 0.5})}};
  for (const Tensor& g : {array<double>({0.1, 0.2, -0.3}), array<double>({0.4, -0.5, 0.6}),
                          array<double>({-0.7, 0.8, 0.05})})
    w = optimizer.apply_gradients({{"w", g}}, w);
  std::vector<double> got = w["w"].to_vector<double>();
  for (size_t i = 0; i < 3; ++i) CHECK(got[i] == doctest::Approx(want[i]).epsilon(1e-6));
}

TEST_CASE("three steps of every optimizer are PyTorch's") {
  using namespace optim;
  check_three_steps(SGD(0.1, {.momentum = 0.9, .weight_decay = 0.01, .nesterov = true}),
                    {0.982422213, -2.06918448, 0.426960316});
  check_three_steps(SGD(0.1, {.momentum = 0.9, .dampening = 0.5}), {0.9699, -2.0467, 0.5218});
  check_three_steps(Adam(0.1, {.weight_decay = 0.01}), {0.829226707, -2.08207659, 0.528180788});
  check_three_steps(Adam(0.1, {.betas = {0.5, 0.6}, .amsgrad = true}),
                    {0.856350514, -2.08907896, 0.506831373});
  check_three_steps(AdamW(0.1, {.weight_decay = 0.1}), {0.80510434, -2.02875055, 0.51394262});
  check_three_steps(Lion(0.1), {0.9, -2.1, 0.4});  // by the formula
}

TEST_CASE("every optimizer makes finite steps by its defaults") {
  for (const optim::OptimizerDef* def : optim::optimizer_table()) {
    CAPTURE(def->name);
    AttrBuffer attrs;
    def->defaults(attrs.data);
    optim::check_attrs(*def, attrs.data, def->name);
    for (const Shape& shape : {Shape{3}, Shape{2, 3}, Shape{2, 3, 2}}) {
      Tensor w = ones(shape), rate(0.01);
      Tensors state = optim::initial_state(*def, attrs.data, w);
      for (int step = 1; step <= 3; ++step) {
        optim::OptimizerStep update{*def, w, w, Tensor(step), rate, state};
        Tensor made = def->update(attrs.data, update);
        CHECK(made.shape() == shape);
        CHECK(all(isfinite(made) & (made < w)).item<bool>());
        w = made, state = update.state;
      }
    }
  }
}

TEST_CASE("options of optimizers are checked, and weight decay may differ by parameter") {
  using namespace optim;
  CHECK(problem_in([] { SGD(0.1, {.nesterov = true}); }) ==
        "SGD: nesterov needs a momentum above 0 and no dampening");
  CHECK(problem_in([] { Adam(0.1, {.betas = {0.9, 1.0}}); }) ==
        "Adam: betas must be at least 0 and less than 1, not 1");
  CHECK(problem_in([] { Muon(0.1, {.adjust_lr_fn = "no"}); }) ==
        "Muon: adjust_lr_fn must be one of original, match_rms_adamw: 'no'");
  CHECK(problem_in([] { Adafactor(0.1, {.decay_rate = 1}); }) ==
        "Adafactor: decay_rate must be at most 0, not 1");
  CHECK(problem_in([] { SGD(-0.1); }) == "learning_rate: must be at least 0, not -0.1");
  CHECK(problem_in([] { SGD(ones({2})); }) == "learning_rate: expected a scalar");
  SGD optimizer(1.0, {.weight_decay = [](const std::string& name, const Tensor&) {
                  return name == "a" ? 0.5 : 0.0;
                }});
  nn::TensorMap w{{"a", ones({1})}, {"b", ones({1}, DType::f16)}};
  w = optimizer.apply_gradients({{"a", zeros({1})}, {"b", zeros({1})}}, w);
  CHECK(w["a"].item<float>() == 0.5);
  CHECK(w["b"].item<float>() == 1);
  CHECK(w["b"].dtype() == DType::f16);
}

TEST_CASE("gradients are scaled down to a norm") {
  nn::TensorMap gradients{{"a", array<float>({3})}, {"b", array<float>({4})}};
  auto [clipped, norm] = optim::clip_grad_norm(gradients, 1.0);
  CHECK(norm.item<float>() == 5);
  CHECK(clipped["a"].item<float>() == doctest::Approx(0.6));
  CHECK(optim::clip_grad_norm(gradients, 10.0).gradients["b"].item<float>() == 4);
  CHECK(contains(error_in([] { optim::clip_grad_norm({}, 1); }), "there are no gradients"));
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
  check_compiled_step(optim::Adam(0.01, {.amsgrad = true}));
  check_compiled_step(optim::Lion(0.01, {.weight_decay = 0.1}));
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

/// The step of a classifier. Both stay where they are.
static auto compiled_step(Perceptron& model, optim::SGD& optimizer) {
  return compile(
      [&](const Tensor& x, const Tensor& y) {
        auto [loss, gradients] =
            nn::value_and_grad(model, [&] { return cross_entropy(model(x), y); })();
        optimizer.update(model, gradients);
        return loss;
      },
      std::tie(model, optimizer));
}

TEST_CASE("weights that share a file, or that a copy of the model holds, are not written over") {
  Folder folder;
  std::string path = folder.path + "/model.safetensors";
  Perceptron model;
  model.save_weights(path);
  model.load_weights(path);
  Perceptron copy = model;
  optim::SGD optimizer(0.1);
  auto step = compiled_step(model, optimizer);
  auto before = values(copy);
  step(inputs(), classes()), step(inputs(), classes());
  CHECK(values(copy) == before);
  CHECK(values(model) != before);
  CHECK(values(model.load_weights(path)) == before);
}

TEST_CASE("a compiled step follows modes, settings and what is frozen") {
  Perceptron model;
  optim::SGD optimizer(0.1);
  auto step = compiled_step(model, optimizer);
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

TEST_CASE("tensors and maps of tensors are state, too") {
  nn::Linear model(2, 2);
  nn::TensorMap average = model.state_dict();
  Tensor count(0);
  auto step = compile(
      [&](const Tensor& share) {
        for (auto& [name, weight] : model.state_dict())
          average[name] = (1 - share) * average[name] + share * weight;
        count = count + 1;
        return count * 2;
      },
      std::tie(model, average, count));
  model.bias = zeros({2}), average["bias"] = ones({2});
  Tensor share(0.5);
  CHECK(step(share).item<int>() == 2);
  CHECK(step(share).item<int>() == 4);
  CHECK(count.item<int>() == 2);
  CHECK(average["bias"].to_vector<float>() == std::vector<float>{0.25, 0.25});
  CHECK(step.stats().traces == 1);
}

TEST_CASE("without compilation a step is the plain one, and what makes state is not shown") {
  nn::Linear model(2, 1);
  optim::Adam optimizer(0.1);
  int runs = 0;
  auto step = compile(
      [&](const Tensor& x) {
        ++runs;
        auto [loss, gradients] = nn::value_and_grad(model, [&] { return mean(model(x)); })();
        optimizer.update(model, gradients);
        return loss;
      },
      std::tie(model, optimizer));
  CHECK(
      contains(error_in([&] { step.show("plan", ones({4, 2})); }), "call the function once first"));
  CHECK(optimizer.steps().item<int>() == 0);
  bool before = disable_compile();
  for (int i = 0; i < 3; ++i) step(ones({4, 2}));
  disable_compile(before);
  CHECK(optimizer.steps().item<int>() == 3);
  CHECK(runs >= 4);
  CHECK(contains(step.show("plan", ones({4, 2})), "return"));
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
  CHECK(optimizer.steps().item<int>() == 2);
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
  CHECK(error_in([&] { second.load_state_dict({{"nope", ones({1})}}); }) ==
        "load_state_dict: an optimizer has no nope");
  CHECK(error_in([&] {
          second.load_state_dict({{"step", Tensor(7)}, {"moments.out.bias.m", ones({4})}});
        }) == "load_state_dict: moments.out.bias.m is f32[3], given f32[4]");
  CHECK(values(first) == values(second));
  CHECK(contains(error_in([&] { first.update(model, {{"out.bias", Tensor()}}); }),
                 "the gradient of out.bias is a null tensor"));
  CHECK(first.steps().item<int>() == 3);  // a step that failed is none
  CHECK(contains(error_in([&] { first.update(model, {{"nope", ones({1})}}); }),
                 "update: a gradient for nope, which is no parameter"));
  CHECK(contains(error_in([&] { first.update(model, {{"out.bias", ones({4})}}); }),
                 "update: the gradient of out.bias has the wrong shape: f32[4] for f32[3]"));
}
