// Describes a network once, compiles it for training and for inference, trains it, and saves it.
#include <tenon/model_blocks.h>
#include <tenon/physical_model.h>
#include <tenon/tenon.h>

#include <cstdio>

namespace model = tn::model;

/// Input sizes are omitted: they are inferred from the data.
model::Model classifier() {
  model::Model m("classifier");
  m |= model::Linear(64)({{"input", "points"}});
  m += model::op_block("gelu");
  m += model::Linear(3)({{"output", "scores"}});
  return m;
}

int main() {
  tn::Tensor angle = tn::random::uniform({512}, 0.0, 6.28, tn::float32, tn::random::key(1));
  tn::Tensor points = tn::stack({tn::cos(angle), tn::sin(angle)}, -1);
  tn::Tensor sector = tn::astype(angle / 2.1, tn::int32);

  model::PhysicalModel training = model::compile(classifier(), {.shapes = {{"points", "n 2"}}});
  model::Values params = training.randomize_params(0);
  auto loss = [&](const tn::Tensor& scores) {
    return tn::mean(tn::logsumexp(scores, 1) - tn::sum(scores * tn::one_hot(sector, 3), 1));
  };
  for (int step = 0; step < 200; ++step) {
    tn::Tensor scores = training.evaluate(params, {{"points", points}}).outputs.at("scores");
    tn::Tensor slope = tn::grad(loss)(scores);
    auto made = training.evaluate_gradients(params, {{"points", points}}, {{"scores", slope}});
    for (auto& [name, value] : params) value = value - made.gradients.at(name) * 0.5f;
    if (step % 50 == 0) std::printf("loss %.3f\n", loss(scores).item<double>());
  }

  model::PhysicalModel inference =
      model::compile(classifier(), {.shapes = {{"points", "n 2"}}, .inference = true});
  tn::Tensor scores = inference.evaluate(params, {{"points", points}}).outputs.at("scores");
  tn::Tensor right = tn::mean(tn::astype(tn::argmax(scores, -1) == sector, tn::float32));
  std::printf("right %.0f %%\n", 100 * right.item<double>());
  inference.save("classifier.tnx");
}
