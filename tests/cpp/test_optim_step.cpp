// Training with backward(): parameters in their places, step(), zero_grad(), compiled or not.
#include <doctest/doctest.h>

#include "errors.h"
#include "tenon/backward.h"
#include "tenon/nn.h"
#include "tenon/optim.h"
#include "tenon/tenon.h"

using namespace tn;

namespace {

nn::Sequential perceptron() {
  random::seed(1);
  return nn::Sequential{nn::Linear(2, 8), nn::relu, nn::Linear(8, 3)};
}
Tensor inputs() { return reshape(linspace(-1, 1, 40), {20, 2}); }
Tensor classes() { return remainder(arange(20), 3); }

std::vector<std::vector<float>> values(const nn::TensorMap& tensors) {
  std::vector<std::vector<float>> out;
  for (const auto& [name, t] : tensors) out.push_back(astype(t, DType::f32).to_vector<float>());
  return out;
}

/// A step with gradients as values.
template <class O>
Tensor updated(nn::Sequential& model, O& optimizer) {
  auto loss_of = [&] { return nn::cross_entropy(model(inputs()), classes()); };
  auto [loss, gradients] = nn::value_and_grad(model, loss_of)();
  optimizer.update(model, gradients);
  return loss;
}

/// A step with gradients in the parameters.
Tensor stepped(nn::Sequential& model, optim::Optimizer& optimizer, const Tensor& x,
               const Tensor& y) {
  Tensor loss = nn::cross_entropy(model(x), y);
  loss.backward();
  optimizer.step();
  optimizer.zero_grad();
  return loss;
}

}  // namespace

TEST_CASE("parameters are listed in their places") {
  nn::Sequential model = perceptron();
  std::vector<std::string> names;
  for (auto& [name, w] : model.parameters()) {
    names.push_back(name);
    w = zeros_like(w);
  }
  CHECK(names == std::vector<std::string>{"layers.0.weight", "layers.0.bias", "layers.2.weight",
                                          "layers.2.bias"});
  CHECK(sum(abs(model(inputs()))).item<float>() == 0);
  CHECK(nn::TensorMap(model.parameters()).size() == 4);
  nn::BatchNorm norm(3);
  CHECK(norm.parameters().size() == 2);  // without the running statistics
  CHECK(norm.state_dict().size() > 2);
  model.layers[0].as<nn::Linear>()->freeze();
  CHECK(model.parameters().size() == 4);
  CHECK(model.trainable_parameters().size() == 2);
}

TEST_CASE("both styles of training have the same bits") {
  nn::Sequential one = perceptron(), other = perceptron();
  auto rate = [](const Tensor& step) { return 0.01 / (1 + step); };
  optim::AdamW first(rate, {.weight_decay = 0.1});
  optim::AdamW second{other.parameters(), {.learning_rate = rate, .weight_decay = 0.1}};
  for (int i = 0; i < 4; ++i) {
    float want = updated(one, first).item<float>();
    CHECK(stepped(other, second, inputs(), classes()).item<float>() == want);
  }
  CHECK(values(one.state_dict()) == values(other.state_dict()));
  CHECK(values(first.state_dict()) == values(second.state_dict()));
  CHECK(second.steps().item<int>() == 4);
  updated(other, second), updated(one, first);  // a model that is watched can be updated, too
  stepped(other, second, inputs(), classes()), updated(one, first);
  CHECK(values(one.state_dict()) == values(other.state_dict()));
}

TEST_CASE("a compiled step with backward() changes parameters and optimizer in place") {
  nn::Sequential one = perceptron(), other = perceptron();
  optim::Adam first{one.parameters(), {.learning_rate = 0.01}};
  optim::Adam second{other.parameters(), {.learning_rate = 0.01}};
  auto step =
      compile([&](const Tensor& x, const Tensor& y) { return stepped(other, second, x, y); },
              std::tie(other, second));
  for (int i = 0; i < 4; ++i) {
    float want = stepped(one, first, inputs(), classes()).item<float>();
    CHECK(step(inputs(), classes()).item<float>() == want);
  }
  CHECK(step.stats().traces == 1);
  CHECK(values(one.state_dict()) == values(other.state_dict()));
  CHECK(values(first.state_dict()) == values(second.state_dict()));
  float want = stepped(one, first, inputs(), classes()).item<float>();  // and so on without it
  CHECK(stepped(other, second, inputs(), classes()).item<float>() == want);
  bool before = disable_compile();
  step(inputs(), classes()), stepped(one, first, inputs(), classes());
  disable_compile(before);
  step(inputs(), classes()), stepped(one, first, inputs(), classes());
  CHECK(values(one.state_dict()) == values(other.state_dict()));
}

TEST_CASE("gradients are accumulated by compiled functions, too") {
  nn::Linear model(2, 1);
  optim::SGD optimizer{model.parameters(), {.learning_rate = 0.5}};
  auto add = compile(
      [&](const Tensor& x) {
        Tensor loss = sum(model(x));
        loss.backward();
        return loss;
      },
      std::tie(model));
  for (int i = 0; i < 3; ++i) add(ones({4, 2}));
  CHECK(grad(model.weight).to_vector<float>() == std::vector<float>{12, 12});
  Tensor before = model.bias.eval();
  optimizer.step();
  CHECK((model.bias - before).item<float>() == -6);
  CHECK(grad(model.weight).size() == 2);
  optimizer.zero_grad();
  CHECK(!grad(model.weight).defined());
}

TEST_CASE("backward() goes through a compiled model to the parameters it has") {
  nn::Linear model(2, 1);
  optim::SGD optimizer{model.parameters()};
  auto forward = compile([&](const Tensor& x) { return model(x); }, std::tie(model));
  for (int i = 0; i < 2; ++i) {
    sum(forward(ones({4, 2}))).backward();
    CHECK(grad(model.weight).to_vector<float>() == std::vector<float>{4, 4});
    optimizer.step(), optimizer.zero_grad();
  }
}

TEST_CASE("tensors and several models are parameters") {
  Tensor w = ones({2}), b = zeros({1});
  optim::SGD optimizer{std::tie(w, b), {.learning_rate = 0.5, .momentum = 0.5}};
  sum(w * w + b).backward();
  optimizer.step();
  CHECK(w.to_vector<float>() == std::vector<float>{0, 0});
  CHECK(b.item<float>() == -1);
  CHECK(optimizer.state_dict().contains("moments.0.v"));
  nn::Linear first(1, 1), second(1, 1);
  optim::Adam both{first, {.learning_rate = 0.1}};
  both.watch(second);
  std::vector<float> before = second.weight.to_vector<float>();
  second(ones({1, 1})).backward();
  both.step();
  CHECK(second.weight.to_vector<float>() != before);
  CHECK(both.state_dict().contains("moments.1.weight.m"));
}

TEST_CASE("weights that are loaded or of another type go on requiring gradients") {
  nn::Sequential model = perceptron(), other = perceptron();
  optim::SGD optimizer{model.parameters(), {.learning_rate = 0.1}};
  nn::TensorMap half;
  for (const auto& [name, w] : other.state_dict()) half.emplace(name, astype(w, DType::f16));
  model.load_state_dict(half, {.dtype = DType::f32});
  stepped(model, optimizer, inputs(), classes());
  CHECK(values(other.state_dict()) != values(model.state_dict()));
  auto* linear = model.layers[0].as<nn::Linear>();
  CHECK(requires_grad(linear->weight));
  linear->freeze();
  auto before = linear->weight.to_vector<float>();
  stepped(model, optimizer, inputs(), classes());
  CHECK(linear->weight.to_vector<float>() == before);
}

TEST_CASE("what step() refuses") {
  nn::Linear model(2, 1);
  CHECK(contains(error_in([] { optim::SGD(0.1).step(); }), "was given no parameters"));
  Tensor w = ones({2});
  optim::SGD of_tensor{std::tie(w)};
  Tensor moved = std::move(w);
  CHECK(
      contains(error_in([&] { of_tensor.step(); }), "are frozen, or were moved to another place"));
  optim::SGD optimizer{model.parameters()};
  CHECK(contains(error_in([&] { optimizer.step(); }), "none of 2 parameters has a gradient"));
  CHECK(problem_in([&] { optim::Adam(0.1, {.learning_rate = 0.2}); }) ==
        "Adam: learning_rate is given twice");
  Tensor x = ones({1, 2});
  auto lost = compile([&](const Tensor& t) {
    sum(model(t)).backward();
    return t;
  });
  CHECK(contains(error_in([&] { lost(x); }), "from outside the traced function"));
}

TEST_CASE("an optimizer follows its model") {
  auto trains = [](optim::Optimizer& optimizer, nn::Linear& model) {
    auto before = model.weight.to_vector<float>();
    sum(model(ones({1, 2}))).backward();
    optimizer.step(), optimizer.zero_grad();
    return model.weight.to_vector<float>() != before;
  };
  std::vector<nn::Linear> models;  // which grow, and are moved
  models.emplace_back(2, 1);
  optim::Adam first{models[0].parameters(), {.learning_rate = 0.1}};
  optim::SGD tied{std::tie(models[0]), {.learning_rate = 0.1}};
  for (int i = 0; i < 20; ++i) models.emplace_back(2, 1);
  CHECK(trains(first, models[0]));
  CHECK(trains(tied, models[0]));
  optim::SGD second{models[1].parameters(), {.learning_rate = 0.1}};
  std::swap(models[0], models[1]);
  CHECK(trains(first, models[1]));
  CHECK(trains(second, models[0]));
  CHECK_FALSE(contains(error_in([&] { first.zero_grad(); }), "module"));
  // Assigned to a model that has an optimizer itself: then both train what is there.
  models[1] = std::move(models[0]);
  CHECK(trains(first, models[1]));
  CHECK(trains(second, models[1]));
  models.erase(models.begin(), models.begin() + 1);
  CHECK(trains(second, models[0]));
  nn::Linear copy = models[0];  // which is another model
  CHECK(contains(error_in([&] { trains(first, copy); }), "none of 2 parameters has a gradient"));
}

TEST_CASE("models move with their optimizers") {
  struct Trainer {
    nn::Linear model{2, 1};
    optim::AdamW optimizer{model.parameters(), {.learning_rate = 0.1}};
  };
  static_assert(std::is_nothrow_move_constructible_v<Trainer>);  // a vector copies otherwise
  std::vector<Trainer> trainers;
  for (int i = 0; i < 9; ++i) trainers.emplace_back();
  for (Trainer& each : trainers) {
    auto before = each.model.weight.to_vector<float>();
    sum(each.model(ones({1, 2}))).backward();
    each.optimizer.step();
    CHECK(each.model.weight.to_vector<float>() != before);
  }
}

TEST_CASE("an optimizer whose model is gone says so") {
  auto model = std::make_unique<nn::Linear>(2, 1);
  optim::SGD optimizer{model->parameters(), {.learning_rate = 0.1}};
  model.reset();
  std::string error = error_in([&] { optimizer.step(); });
  CHECK(contains(error, "module: the model of these parameters does not exist any more"));
  CHECK(contains(error, "test_optim_step.cpp"));
}

TEST_CASE("an optimizer that has the state of another model says so") {
  nn::Linear small(2, 3), large(4, 3);
  optim::Adam optimizer(0.1);
  auto gradients = [](nn::Linear& model) {
    nn::TensorMap all;
    for (auto& [name, w] : model.parameters()) all.emplace(name, ones_like(w));
    return all;
  };
  optimizer.update(small, gradients(small));
  std::string error = error_in([&] { optimizer.update(large, gradients(large)); });
  CHECK(contains(error, "update: the optimizer has the state of another model: moments.weight.m"));
  CHECK(contains(error, "make an optimizer for each model"));
  CHECK(contains(error, "test_optim_step.cpp"));
  optim::Adam loaded(0.1);
  loaded.load_state_dict(optimizer.state_dict());
  for (int again = 0; again < 2; ++again)
    CHECK(contains(error_in([&] { loaded.update(large, gradients(large)); }), "of another model"));
  loaded.update(small, gradients(small));
}

TEST_CASE("a loss scaler that a compiled function changes is state of it") {
  nn::Linear model(2, 1);
  optim::SGD optimizer{model.parameters(), {.learning_rate = 0.1}};
  amp::LossScaler scaler;
  auto train = [&](const Tensor& x) {
    Tensor loss = sum(square(model(x)));
    scaler.scale(loss).backward();
    scaler.step(optimizer), optimizer.zero_grad();
    return loss;
  };
  auto forgotten = compile(train, std::tie(model, optimizer));
  std::string error = error_in([&] { forgotten(ones({4, 2})); });
  CHECK(contains(error, "the scaler is not part of the state of the compiled function"));
  CHECK(contains(error, "std::tie(model, scaler)"));
  CHECK(contains(error, "test_optim_step.cpp"));
  compile(train, std::tie(model, optimizer, scaler))(ones({4, 2}));
  CHECK(scaler.state_dict().at("good_steps").item<int>() == 1);
}

TEST_CASE("reasons of traces name what changed in models and state") {
  nn::Linear model(2, 1);
  Tensor scale = array(1.0), x = ones({4, 2});
  auto step =
      compile([&](const Tensor& t) { return sum(model(t)) * scale; }, std::tie(model, scale));
  step(x), model.eval(), step(x), model.freeze({"bias"}), step(x);
  scale = array(1.0, float64), step(x), model.bias = {}, step(x);
  auto reasons = step.why_recompiled();
  REQUIRE(reasons.size() == 5);
  CHECK(contains(reasons[1], "state 0.training was 1, now 0"));
  CHECK(contains(reasons[2], "state 0.bias was trained, now fixed"));
  CHECK(contains(reasons[3], "state 1.dtype was float32, now float64"));
  CHECK(contains(reasons[4], "state 0.bias was fixed, now absent"));
  auto given = compile([](const nn::Linear& m, const Tensor& t) { return sum(m(t)); });
  given(nn::Linear(2, 1), x), given(model, x);
  CHECK(contains(given.why_recompiled()[1],
                 "argument 0.training was 1, now 0, argument 0.bias was trained, now absent"));
  optim::SGD optimizer{model.parameters(), {.learning_rate = 0.1}};
  auto total = compile([&](const Tensor& t) { return sum(model(t)); }, std::tie(model));
  total(x), sum(model(x)).backward(), total(x);
  CHECK(contains(total.why_recompiled()[1],
                 "state 0.weight was trained, a variable, now trained, with a gradient"));
}

TEST_CASE("a compiled step leaves the model where it is") {
  nn::Sequential model{nn::Linear(2, 2), nn::relu};
  optim::Adam plain(0.1);  // makes its state in the first step
  auto loss_and_grad = nn::value_and_grad(model, [&](const Tensor& x) { return sum(model(x)); });
  nn::Parameters parameters = model.parameters();
  auto step = compile(
      [&](const Tensor& x) {
        auto [loss, gradients] = loss_and_grad(x);
        plain.update(model, gradients);
        return loss;
      },
      std::tie(model, plain));
  for (int i = 0; i < 3; ++i) step(ones({1, 2}));
  CHECK(parameters[0].tensor.to_vector<float>() ==
        model.state_dict().at("layers.0.weight").to_vector<float>());
  CHECK(plain.steps().item<int64_t>() == 3);
}

namespace {

struct Both {
  nn::Linear a{1, 1};
  Tensor count = zeros({1});
  static void fields(auto& b, auto&& f) { f("a", b.a), f("count", b.count); }
};

}  // namespace

TEST_CASE("structs and lists of modules are state") {
  Both both;
  std::vector<nn::Linear> list(2, nn::Linear(1, 1));
  auto step = compile(
      [&](const Tensor& x) {
        both.count = both.count + 1;
        return list[1](list[0](both.a(x)));
      },
      std::tie(both, list));
  Tensor x = ones({1, 1}), y = list[1](list[0](both.a(x)));
  for (int i = 0; i < 2; ++i) CHECK(step(x).item<float>() == y.item<float>());
  CHECK(both.count.item<float>() == 2);
}

TEST_CASE("the gradient of a model is compiled") {
  nn::Linear model(2, 1);
  auto f = nn::value_and_grad(model, [&](const Tensor& x) { return sum(model(x)); });
  auto compiled = compile(f, std::tie(model));
  Tensor x = array({{1.f, 2.f}});
  CHECK(compiled(x).gradients.at("weight").to_vector<float>() == std::vector<float>{1, 2});
}

TEST_CASE("an optimizer that a compiled function changes is state of it") {
  nn::Linear model(2, 1);
  optim::SGD optimizer{model.parameters(), {.learning_rate = 0.1, .momentum = 0.9}};
  auto train = [&](const Tensor& x) {
    Tensor loss = sum(square(model(x)));
    loss.backward(), optimizer.step(), optimizer.zero_grad();
    return loss;
  };
  auto forgotten = compile(train, std::tie(model));
  std::string said = error_in([&] { forgotten(ones({4, 2})); });
  CHECK(contains(said, "update: the optimizer is not part of the state of the compiled function"));
  CHECK(contains(said, "std::tie(model, optimizer)"));
  auto step = compile(train, std::tie(model, optimizer));
  for (int64_t size : {4, 4, 5}) step(ones({size, 2}));
  CHECK(optimizer.steps().item<int>() == 3);
  CHECK(step.why_recompiled().size() >= 2);
  // One that the function makes is its own.
  auto inside = compile([](const Tensor& w) {
    optim::SGD own(0.5);
    return own.apply_gradients({{"w", 2.0 * w}}, {{"w", w}}).at("w");
  });
  CHECK(inside(array(3.0)).item<float>() == 0);
  // So is a copy; what was moved from says so.
  auto copied = compile([&](const Tensor& w) {
    optim::SGD own = optimizer;
    return own.apply_gradients({{"w", w}}, {{"w", w}}).at("w");
  });
  CHECK(copied(array(1.0)).item<float>() == doctest::Approx(0.9));
  optim::SGD next = std::move(optimizer);
  auto use = [&](const Tensor& w) {
    return optimizer.apply_gradients({{"w", w}}, {{"w", w}})["w"];
  };
  CHECK(contains(error_in([&] { compile(use)(ones({2})); }), "null tensor"));  // NOLINT
}
