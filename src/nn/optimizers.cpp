// SGD, Adam, AdamW, Lion and clipping: the formulas of Python's tenon.optim, op for op.
#include <cmath>

#include "base/error.h"
#include "ir/place.h"
#include "tenon/operators.h"
#include "tenon/optim.h"

namespace tn::optim {

static void check_shares(std::string_view optimizer, std::array<double, 2> betas) {
  for (double share : betas)
    if (!(share >= 0 && share < 1))
      fail("{}: betas must be at least 0 and less than 1, not {}", optimizer, share);
}

SGD::SGD(const LearningRate& learning_rate, const SGDSettings& settings)
    : Optimizer(learning_rate, settings.weight_decay),
      momentum_(settings.momentum),
      dampening_(settings.dampening),
      nesterov_(settings.nesterov) {
  if (!(momentum_ >= 0)) fail("SGD: momentum must be at least 0, not {}", momentum_);
  if (nesterov_ && (momentum_ == 0 || dampening_ != 0))
    fail("SGD: nesterov needs a momentum above 0 and no dampening");
}

void SGD::init_single(const Tensor& parameter, TensorMap& moments) const {
  if (momentum_ > 0) moments["v"] = zeros_like(parameter);
}

Tensor SGD::apply_single(const Tensor& gradient, const Tensor& parameter,
                         TensorMap& moments) const {
  if (momentum_ == 0) return parameter - learning_rate() * gradient;
  Tensor added = gradient;
  if (dampening_ != 0) added = where(step() == 1, 1.0, 1 - dampening_) * gradient;
  Tensor v = moments["v"] = momentum_ * moments.at("v") + added;
  return parameter - learning_rate() * (nesterov_ ? gradient + momentum_ * v : v);
}

Adam::Adam(const LearningRate& learning_rate, const AdamSettings& settings, bool decoupled)
    : Optimizer(learning_rate, settings.weight_decay, decoupled),
      betas_(settings.betas),
      eps_(settings.eps),
      bias_correction_(settings.bias_correction),
      amsgrad_(settings.amsgrad) {
  check_shares("Adam", betas_);
  if (!(eps_ >= 0)) fail("Adam: eps must be at least 0, not {}", eps_);
}

void Adam::init_single(const Tensor& parameter, TensorMap& moments) const {
  for (const char* name : {"m", "v"}) moments[name] = zeros_like(parameter);
  if (amsgrad_) moments["v_max"] = zeros_like(parameter);
}

/// `x / (1 - beta**step)`, without the cancellation.
static Tensor over_weights(const Tensor& x, double beta, const Tensor& step) {
  return beta > 0 ? x / -expm1(step * std::log(beta)) : x / 1.0;
}

Tensor Adam::apply_single(const Tensor& gradient, const Tensor& parameter,
                          TensorMap& moments) const {
  auto [beta1, beta2] = betas_;
  Tensor m = moments["m"] = beta1 * moments.at("m") + (1 - beta1) * gradient;
  Tensor v = moments["v"] = beta2 * moments.at("v") + (1 - beta2) * square(gradient);
  if (amsgrad_) v = moments["v_max"] = maximum(moments.at("v_max"), v);
  if (bias_correction_) m = over_weights(m, beta1, step()), v = over_weights(v, beta2, step());
  return parameter - learning_rate() * m / (sqrt(v) + eps_);
}

Lion::Lion(const LearningRate& learning_rate, const LionSettings& settings)
    : Optimizer(learning_rate, settings.weight_decay, true), betas_(settings.betas) {
  check_shares("Lion", betas_);
}

void Lion::init_single(const Tensor& parameter, TensorMap& moments) const {
  moments["m"] = zeros_like(parameter);
}

Tensor Lion::apply_single(const Tensor& gradient, const Tensor& parameter,
                          TensorMap& moments) const {
  auto [beta1, beta2] = betas_;
  Tensor m = moments.at("m");
  moments["m"] = beta2 * m + (1 - beta2) * gradient;
  return parameter - learning_rate() * sign(beta1 * m + (1 - beta1) * gradient);
}

Clipped clip_grad_norm(const TensorMap& gradients, double max_norm, std::source_location place) {
  LocScope at(place);
  if (gradients.empty()) fail("clip_grad_norm: there are no gradients");
  if (!(max_norm >= 0)) fail("clip_grad_norm: max_norm must be at least 0, not {}", max_norm);
  Tensors squares;
  for (const auto& [name, gradient] : gradients)
    squares.push_back(sum(square(astype(gradient, promote(gradient.dtype(), DType::f32)))));
  Tensor norm = sqrt(sum(stack(squares)));
  Tensor scale = minimum(max_norm / (norm + 1e-6), 1);
  TensorMap scaled;
  for (const auto& [name, gradient] : gradients)
    scaled.emplace(name, astype(gradient * scale, gradient.dtype()));
  return {std::move(scaled), norm};
}

}  // namespace tn::optim
