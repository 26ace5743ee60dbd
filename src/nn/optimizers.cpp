// SGD, Adam, AdamW: the formulas of Python's tenon.optim, op for op.
#include <cmath>

#include "base/error.h"
#include "tenon/operators.h"
#include "tenon/optim.h"

namespace tn::optim {

SGD::SGD(const LearningRate& learning_rate, const SGDSettings& settings)
    : Optimizer(learning_rate), settings_(settings) {
  if (settings.nesterov && (settings.momentum <= 0 || settings.dampening != 0))
    fail("SGD: nesterov needs a momentum above 0 and no dampening");
}

void SGD::init_single(const Tensor& parameter, NamedTensors& moments) const {
  if (settings_.momentum > 0) moments["v"] = zeros_like(parameter);
}

Tensor SGD::apply_single(const Tensor& given, const Tensor& parameter,
                         NamedTensors& moments) const {
  const auto& [momentum, weight_decay, dampening, nesterov] = settings_;
  Tensor gradient = given;
  if (weight_decay != 0) gradient = gradient + weight_decay * parameter;
  if (momentum > 0) {
    Tensor& v = moments.at("v");
    v = momentum * v + (1 - dampening) * gradient;
    gradient = nesterov ? gradient + momentum * v : v;
  }
  return parameter - learning_rate() * gradient;
}

Adam::Adam(const LearningRate& learning_rate, const AdamSettings& settings)
    : Optimizer(learning_rate), settings_(settings) {}

void Adam::init_single(const Tensor& parameter, NamedTensors& moments) const {
  moments["m"] = zeros_like(parameter);
  moments["v"] = zeros_like(parameter);
}

/// `1 - beta**step`, without the cancellation.
static Tensor sum_of_weights(const Tensor& step, double beta) {
  return -expm1(step * std::log(beta));
}

Tensor Adam::apply_single(const Tensor& gradient, const Tensor& parameter,
                          NamedTensors& moments) const {
  auto [beta1, beta2] = settings_.betas;
  Tensor m = beta1 * moments.at("m") + (1 - beta1) * gradient;
  Tensor v = beta2 * moments.at("v") + (1 - beta2) * square(gradient);
  moments["m"] = m, moments["v"] = v;
  if (settings_.bias_correction) {
    m = m / sum_of_weights(step(), beta1);
    v = v / sum_of_weights(step(), beta2);
  }
  return parameter - learning_rate() * m / (sqrt(v) + settings_.eps);
}

AdamW::AdamW(const LearningRate& learning_rate, const AdamWSettings& settings)
    : Adam(learning_rate, {settings.betas, settings.eps, settings.bias_correction}),
      weight_decay_(settings.weight_decay) {}

Tensor AdamW::apply_single(const Tensor& gradient, const Tensor& parameter,
                           NamedTensors& moments) const {
  Tensor decayed = parameter * (1 - learning_rate() * weight_decay_);
  return Adam::apply_single(gradient, decayed, moments);
}

}  // namespace tn::optim
