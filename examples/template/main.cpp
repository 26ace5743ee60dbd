// Trains a small network on a noisy curve, then predicts with it.
#include <tenon/nn.h>
#include <tenon/optim.h>
#include <tenon/tenon.h>

#include <cstdio>

namespace nn = tn::nn;

int main() {
  tn::random::seed(1);
  tn::Tensor x = tn::random::uniform({512, 1}, -3.0, 3.0);
  tn::Tensor y = tn::sin(x) + tn::random::normal({512, 1}) * 0.1;

  nn::Sequential model{nn::Linear(1, 32), tn::tanh, nn::Linear(32, 1)};
  tn::optim::AdamW optimizer(1e-2);
  auto loss_and_grad = nn::value_and_grad(model, [&](const tn::Tensor& x, const tn::Tensor& y) {
    return tn::mean(tn::square(model(x) - y));
  });
  auto step = tn::compile(  // one plan: forward, backward, and the new parameters
      [&](const tn::Tensor& x, const tn::Tensor& y) {
        auto [loss, gradients] = loss_and_grad(x, y);
        optimizer.update(model, gradients);
        return loss;
      },
      std::tie(model, optimizer));

  for (int i = 0; i <= 300; ++i) {
    tn::Tensor loss = step(x, y);
    if (i % 100 == 0) std::printf("step %3d  loss %.4f\n", i, loss.item<double>());
  }
  double predicted = model(tn::full({1, 1}, 1.0)).item<double>();
  std::printf("sin(1) = 0.84, predicted %.2f\n", predicted);
  return predicted > 0.7 && predicted < 1.0 ? 0 : 1;
}
