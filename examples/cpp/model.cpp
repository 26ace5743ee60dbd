// A logical model: blocks, names and connections. It is described once, without sizes, compiled for
// training and for inference, and saved.
//
//     model [STEPS]
#include <tenon/model_blocks.h>
#include <tenon/optim.h>
#include <tenon/physical_model.h>
#include <tenon/tenon.h>

#include <cstdio>
#include <cstdlib>

namespace model = tn::model;
namespace optim = tn::optim;

/// `x + down(gelu(up(norm(x))))`, a model that is a block of another one.
model::Model residual(int64_t width) {
  model::Model m("residual");
  m |= model::LayerNorm()({{"input", "x"}});
  m += model::Linear(2 * width);
  m += model::op_block("gelu");
  m += model::Linear(width)({{"output", "change"}});
  m |= model::op_block("add")({{"x1", "x"}, {"x2", "change"}, {"output", "output"}});
  return m;
}

/// Input sizes are omitted: they are inferred from the data.
model::Model classifier() {
  model::Model m("classifier");
  m |= model::Linear(16)({{"input", "points"}});
  for (int i = 0; i < 2; ++i) m += residual(16)({}, "block" + std::to_string(i));
  m += model::Linear(3)({{"output", "scores"}});
  return m;
}

/// Points on a circle, and the third of it that they are on.
model::Values circle(int64_t count) {
  tn::Tensor angle = tn::random::uniform({count}, 0.0, 6.28);
  return {{"points", tn::stack({tn::cos(angle), tn::sin(angle)}, -1)},
          {"sector", tn::astype(angle / 2.1, tn::int64)}};
}

int main(int argc, char** argv) {
  int steps = argc > 1 ? std::atoi(argv[1]) : 100;
  tn::random::seed(0);
  model::Values data = circle(512), others = circle(512);
  model::Model network = classifier();
  std::printf("%s\n", network.to_text().c_str());

  // For training, the loss is one more block, and what is differentiated.
  model::Model with_loss = network;
  with_loss |= model::CrossEntropyLoss({.axis = -1})(
      {{"input", "scores"}, {"target", "sector"}, {"output", model::IOKey("loss")}});
  model::PhysicalModel training =
      model::compile(with_loss, {.shapes = {{"points", "n 2"}}, .types = {{"sector", tn::int64}}});
  model::Values params = training.randomize_params(0);
  optim::AdamW optimizer(3e-3);
  for (int step = 0; step < steps; ++step) {
    auto made = training.evaluate_gradients(params, data, {{"loss", tn::array(1.F)}});
    params = optimizer.apply_gradients(made.gradients, params);
    if (step % (steps / 4 + 1) == 0)
      std::printf("step %3d  loss %.3f\n", step, made.outputs.at("loss").item<double>());
  }

  // For inference, the same description without the loss, and with weights that are constants.
  model::PhysicalModel inference = model::compile(
      network, {.shapes = {{"points", "n 2"}}, .inference = true, .keys = {.constants = params}});
  inference.save("classifier.tnx");
  auto saved = tn::Executable::load<tn::Tensor(tn::Tensor)>("classifier.tnx");
  tn::Tensor right = tn::mean(tn::argmax(saved(others["points"]), -1) == others["sector"]);
  std::printf("%s\nright %.1f %%\n", saved.to_text().c_str(), 100 * right.item<double>());
}
