#include "tenon/optim/loss_scaler.h"

#include "base/error.h"
#include "ir/place.h"
#include "ir/trace.h"
#include "tenon/backward.h"
#include "tenon/operators.h"

namespace tn::amp {

Tensor all_finite(const Tensors& tensors) {
  Tensor finite = full({}, true, DType::b1, Device());
  for (const Tensor& t : tensors) finite = finite & all(isfinite(t)).to(Device());
  return finite;
}

Tensor all_finite(const TensorMap& tensors) {
  Tensors list;
  for (const auto& [name, tensor] : tensors) list.push_back(tensor);
  return all_finite(list);
}

LossScaler::LossScaler(double scale, const LossScalerSettings& settings, nn::Place at)
    : settings_(settings), scale_(full({}, scale, DType::f32, Device())), used_(scale_) {
  LocScope scope(at);
  const auto& [dynamic, growth, backoff, interval] = settings;
  if (!(scale > 0 && growth >= 1 && backoff > 0 && backoff < 1 && interval >= 1))
    fail(
        "LossScaler: scale > 0, growth >= 1, 0 < backoff < 1 and interval >= 1 are needed: {}, {},"
        " {} and {}",
        scale, growth, backoff, interval);
}

Tensor LossScaler::scale(const Tensor& loss, nn::Place at) {
  LocScope scope(at);
  if (settings_.dynamic) birth_.check_tied(scale_, "scaler");
  used_ = scale_;
  return loss * used_;
}

Tensor LossScaler::unscale(const Tensor& scaled, nn::Place at) const {
  LocScope scope(at);
  return scaled * (1.0 / used_);
}

TensorMap LossScaler::unscale(const TensorMap& gradients, nn::Place at) const {
  LocScope scope(at);
  TensorMap made;
  for (const auto& [name, gradient] : gradients) made.emplace(name, unscale(gradient));
  return made;
}

/// Whether gradients are finite; the scale for the next step follows from it.
Tensor LossScaler::adjusted(const TensorMap& gradients) {
  constexpr double kLargest = 0x1p100;  // its inverse is the smallest
  Tensor finite = all_finite(gradients);
  if (!settings_.dynamic) return finite;
  birth_.check_tied(scale_, "scaler");
  Tensor good = good_steps_ + 1, grows = good >= settings_.interval;
  Tensor larger = minimum(scale_ * settings_.growth, kLargest);
  Tensor smaller = maximum(scale_ * settings_.backoff, 1 / kLargest);
  scale_ = where(finite, where(grows, larger, scale_), smaller);
  good_steps_ = where(finite & ~grows, good, 0);
  return finite;
}

/// The new tensors if `finite`, else the old ones.
static TensorMap chosen(const Tensor& finite, const TensorMap& made, const TensorMap& before) {
  TensorMap kept;
  for (const auto& [name, tensor] : made)
    kept.emplace(name, where(finite, tensor, before.at(name)));
  return kept;
}

void LossScaler::update_in(optim::Optimizer& optimizer, const nn::Visit& model,
                           const TensorMap& gradients, const nn::Place& at) {
  LocScope scope(at);
  NoGrad plain;
  TensorMap before = nn::trainable_in(model);
  optimizer.init(before);
  TensorMap state = optimizer.state_dict();
  TensorMap made = optimizer.apply_gradients(gradients, before);
  Tensor finite = adjusted(gradients);
  nn::update(model, chosen(finite, made, before), at);
  optimizer.load_state_dict(chosen(finite, optimizer.state_dict(), state));
}

void LossScaler::unscale_(optim::Optimizer& optimizer, nn::Place at) {
  LocScope scope(at);
  NoGrad plain;
  for (const auto& [name, parameter] : optimizer.parameters())
    if (Tensor gradient = grad(parameter); gradient.defined())
      set_grad(parameter, astype(unscale(gradient), parameter.dtype()));
  unscaled_.insert(&optimizer);
}

void LossScaler::step(optim::Optimizer& optimizer, nn::Place at) {
  LocScope scope(at);
  NoGrad plain;
  if (!unscaled_.contains(&optimizer)) unscale_(optimizer);
  unscaled_.erase(&optimizer);
  TensorMap before, gradients, state = optimizer.state_dict();
  std::vector<nn::Parameter> parameters = optimizer.parameters();
  for (const auto& [name, parameter] : parameters) {
    before.emplace(name, parameter);
    if (Tensor gradient = grad(parameter); gradient.defined()) gradients.emplace(name, gradient);
  }
  optimizer.step();
  Tensor finite = adjusted(gradients);
  for (const auto& [name, parameter] : parameters)
    rebind(parameter, where(finite, parameter, before.at(name)));
  optimizer.load_state_dict(chosen(finite, optimizer.state_dict(), state));
  if (Trace::current()) return;
  Tensors pending{scale_, good_steps_};  // as `optimizer.step` does: loops may read no values
  for (const auto& [name, parameter] : parameters) pending.push_back(parameter);
  for (auto& [name, tensor] : optimizer.state_dict()) pending.push_back(std::move(tensor));
  eval(pending);
}

nn::Visit LossScaler::as_visit() const {
  return [at = const_cast<LossScaler*>(this)](nn::Visitor& v) {
    v.tensor({.path = {.name = "scale"}, .tensor = at->scale_});
    v.tensor({.path = {.name = "used"}, .tensor = at->used_});
    v.tensor({.path = {.name = "good_steps"}, .tensor = at->good_steps_});
  };
}

void LossScaler::load_state_dict(const TensorMap& state, nn::Place at) {
  nn::put_all(as_visit(), "LossScaler: load_state_dict", state, {}, at);
}

}  // namespace tn::amp
