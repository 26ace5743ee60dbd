// An optimizer of your own: AdaBelief, which takes long steps where gradients are as expected.
//
//     own_optimizer [STEPS]
//
// The base class provides the step count, learning rates and schedules, weight decay, state that is
// saved and loaded, and compilation.
#include <tenon/nn.h>
#include <tenon/optim.h>
#include <tenon/tenon.h>

#include <cstdio>
#include <cstdlib>

namespace nn = tn::nn;
namespace optim = tn::optim;

/// AdaBelief (Zhuang and others, 2020):
///
///     m = beta1 * m + (1 - beta1) * gradient
///     s = beta2 * s + (1 - beta2) * (gradient - m)**2 + eps
///     w = w - learning_rate * m / (sqrt(s) + eps)
///
/// where m and s are divided by the sum of the weights of the gradients in them.
class AdaBelief : public optim::Optimizer {
 public:
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;

  explicit AdaBelief(const optim::LearningRate& rate, const optim::WeightDecay& decay = 0.0)
      : Optimizer(rate, decay, /*decoupled=*/true) {}

 protected:
  /// What it remembers of a parameter before the first step.
  void init_single(const tn::Tensor& parameter, optim::TensorMap& moments) const override {
    moments["m"] = tn::zeros_like(parameter);
    moments["s"] = tn::zeros_like(parameter);
  }
  /// The new parameter.
  tn::Tensor apply_single(const tn::Tensor& gradient, const tn::Tensor& parameter,
                          optim::TensorMap& moments) const override {
    tn::Tensor &m = moments["m"], &s = moments["s"];
    m = beta1 * m + (1 - beta1) * gradient;
    s = beta2 * s + (1 - beta2) * tn::square(gradient - m) + eps;
    tn::Tensor mean = m / (1 - tn::pow(beta1, steps()));
    tn::Tensor belief = s / (1 - tn::pow(beta2, steps()));
    return parameter - learning_rate() * mean / (tn::sqrt(belief) + eps);
  }
};

/// Trains a network to tell two spirals apart; the loss of the last step.
template <class O>
double train(O optimizer, int steps, bool compiled) {
  tn::random::seed(0);
  tn::Tensor along = tn::random::uniform({512}, 0.2, 1.0), arm = tn::arange(512) % 2;
  tn::Tensor angle = 6 * along + 3.14159 * arm;
  tn::Tensor points = tn::stack({along * tn::cos(angle), along * tn::sin(angle)}, -1);
  nn::Sequential model{nn::Linear(2, 32), tn::tanh, nn::Linear(32, 32), tn::tanh,
                       nn::Linear(32, 2)};
  auto loss_and_grad =
      nn::value_and_grad(model, [&] { return tn::cross_entropy(model(points), arm); });
  auto step = [&] {
    auto [loss, gradients] = loss_and_grad();
    optimizer.update(model, gradients);
    return loss;
  };
  auto fast_step = tn::compile(step, std::tie(model, optimizer));
  double loss = 0;
  for (int i = 0; i < steps; ++i) loss = (compiled ? fast_step() : step()).template item<double>();
  return loss;
}

int main(int argc, char** argv) {
  int steps = argc > 1 ? std::atoi(argv[1]) : 200;
  std::printf("SGD        %.4f\n", train(optim::SGD(0.1, {.momentum = 0.9}), steps, true));
  std::printf("Adam       %.4f\n", train(optim::Adam(0.01), steps, true));
  double loss = train(AdaBelief(0.01), steps, true);
  std::printf("AdaBelief  %.4f\n", loss);
  bool same = train(AdaBelief(0.01), steps, false) == loss;
  std::printf("compiled or not: %s\n", same ? "the same bits" : "different bits");

  // Its state has names, as that of every optimizer: for checkpoints.
  AdaBelief optimizer([](const tn::Tensor& step) { return 0.1 / (1 + step); }, 0.01);
  optimizer.apply_gradients({{"w", tn::array({1.F, -2.F})}}, {{"w", tn::zeros({2})}});
  for (const auto& [name, tensor] : optimizer.state_dict())
    std::printf("%s %s\n", name.c_str(), tensor.to_string().c_str());
  AdaBelief resumed(0.1);
  resumed.load_state_dict(optimizer.state_dict());
  return same && resumed.steps().item<int>() == 1 ? 0 : 1;
}
