// Logical models with losses, and profiles as values.
#include <doctest/doctest.h>

#include "errors.h"
#include "tenon/model_blocks.h"
#include "tenon/optim.h"
#include "tenon/tenon.h"
#include "tenon/train_model.h"

using namespace tn;

TEST_CASE("a model with a loss is trained step by step") {
  model::Model m;
  m |= model::Linear(1)({{"input", "input"}, {"output", "output"}});
  model::TrainModel training(m);
  CHECK(contains(error_in([&] { model::compile(training); }), "TrainModel: there is no loss"));
  training.add_loss(model::MSELoss(), {{"input", "output"}, {"target", "y"}}, 2);
  CHECK(contains(error_in([&] { training.add_loss(model::MSELoss(), {}, 1, "loss"); }),
                 "'loss' is the name of the sum of all losses"));
  auto physical = model::compile(training, {.shapes = {{"input", "8 2"}}});
  model::Values params = physical.randomize_params(), state;
  optim::SGD optimizer(0.05);
  Tensor x = random::normal({8, 2}), y = sum(x, 1, {}, true);
  double first = 0, last = 0;
  for (int i = 0; i < 30; ++i) {
    auto step = physical.step(optimizer, params, {{"input", x}, {"y", y}}, state);
    params = step.params;
    (i == 0 ? first : last) = step.loss.item<double>();
    CHECK(step.loss.item<double>() ==
          doctest::Approx(2 * step.outputs.at("loss_0").item<double>()));
  }
  CHECK(last < 0.1 * first);
}

TEST_CASE("a profile has the steps of a call and their lines") {
  auto f = compile([](Tensor x) { return sum(exp(x) * x); });
  Tensor x = ones({1000});
  f(x).eval();
  Profile timing = profile([&] { f(x).eval(); }, 3);
  REQUIRE(!timing.steps.empty());
  CHECK(timing.seconds >= timing.steps[0].seconds);
  CHECK(contains(timing.steps[0].place, "test_train_model.cpp"));
  CHECK(contains(timing.to_string(), "of it in"));
  CHECK(contains(error_in([&] { profile([] {}, 0); }), "at least 1 call is needed"));
}
