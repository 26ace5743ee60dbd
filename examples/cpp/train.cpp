// Trains a network to classify the arms of a spiral, saves its weights and the compiled network,
// and runs the saved file.
#include <tenon/nn.h>
#include <tenon/optim.h>
#include <tenon/tenon.h>

#include <cstdio>

namespace nn = tn::nn;

/// Points on three arms of a spiral, and the arm of each point.
struct Spiral {
  tn::Tensor points, arms;
  explicit Spiral(int64_t count) {
    tn::Tensor along = tn::random::uniform({count}, 0.2, 1.0);
    arms = tn::random::randint({count}, 0, 3);
    tn::Tensor angle = along * 5 + arms * 2.0944 + tn::random::normal({count}) * 0.1;
    points = tn::stack({along * tn::cos(angle), along * tn::sin(angle)}, -1);
  }
};

struct Classifier : nn::Module<Classifier> {
  nn::Linear in{2, 64};
  std::vector<nn::Linear> hidden = {nn::Linear(64, 64), nn::Linear(64, 64)};
  nn::Dropout dropout{0.1};
  nn::Linear out{64, 3};

  tn::Tensor forward(const tn::Tensor& points) const {
    tn::Tensor x = tn::gelu(in(points));
    for (const nn::Linear& layer : hidden) x = x + tn::gelu(layer(x));
    return out(dropout(x));
  }
  static void fields(auto& m, auto&& f) {
    f("in", m.in), f("hidden", m.hidden), f("dropout", m.dropout), f("out", m.out);
  }
};

double accuracy(const Classifier& model, const Spiral& data) {
  return tn::mean(tn::argmax(model(data.points), -1) == data.arms).item<double>();
}

int main() {
  tn::random::seed(1);
  Spiral train(1024), test(1024);
  Classifier model;
  tn::optim::AdamW optimizer(3e-3);

  auto loss_and_grad =
      nn::value_and_grad(model, [&](const tn::Tensor& points, const tn::Tensor& arms) {
        return tn::cross_entropy(model(points), arms);
      });
  auto step = tn::compile(  // one plan: forward, backward, new parameters in place of the old
      [&](const tn::Tensor& points, const tn::Tensor& arms) {
        auto [loss, gradients] = loss_and_grad(points, arms);
        optimizer.update(model, gradients);
        return loss;
      },
      std::tie(model, optimizer));

  for (int i = 0; i <= 300; ++i) {
    tn::Tensor loss = step(train.points, train.arms);
    if (i % 100 == 0) std::printf("step %3d  loss %.4f\n", i, loss.item<double>());
  }
  model.eval();
  std::printf("accuracy %.1f %%\n", 100 * accuracy(model, test));
  model.save_weights("spiral.safetensors");  // model.load_weights(...) in Python reads it, too

  auto network = [&](const tn::Tensor& points) { return model(points); };
  tn::compile_ahead(network, {{.shape = {{1, 64, 1024, "points"}, 2}, .name = "points"}})
      .save("spiral.tnx");
  auto loaded = tn::Executable::load<tn::Tensor(tn::Tensor)>("spiral.tnx");
  bool same = tn::all(loaded(test.points) == model(test.points)).item<bool>();
  std::printf("spiral.tnx computes %s\n", same ? "the same" : "something else");
  return same ? 0 : 1;
}
