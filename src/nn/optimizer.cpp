// The base of the optimizers.
#include "base/error.h"
#include "ir/node.h"
#include "ir/place.h"
#include "tenon/operators.h"
#include "tenon/optim.h"

namespace tn::optim {

static void check_not_negative(std::string_view name, double value) {
  if (!(value >= 0)) fail("{}: must be at least 0, not {}", name, value);
}

static Tensor at_least_float32(const Tensor& x) {
  return astype(x, promote(x.dtype(), DType::f32));
}

Optimizer::Optimizer(const LearningRate& rate, const WeightDecay& decay, bool decoupled)
    : decay_(decay), decoupled_(decoupled) {
  check_not_negative("weight_decay", decay.value);
  set_learning_rate(rate);
}

void Optimizer::set_learning_rate(const LearningRate& rate) {
  schedule_ = rate.schedule;
  Tensor value = schedule_ ? schedule_(step_) : rate.value;
  if (!value || value.rank() != 0) fail("learning_rate: expected a scalar");
  learning_rate_ = astype(value, DType::f32);
}

TensorMap Optimizer::apply_gradients(const TensorMap& gradients, const TensorMap& parameters,
                                     std::source_location place) {
  LocScope at(place);
  if (schedule_) learning_rate_ = astype(schedule_(step_), DType::f32);
  step_ = step_ + 1;
  TensorMap made;
  for (const auto& [name, gradient] : gradients) {
    auto found = parameters.find(name);
    if (found == parameters.end()) fail("update: a gradient for {}, which is no parameter", name);
    made.emplace(name, applied(name, gradient, found->second));
  }
  return made;
}

Tensor Optimizer::applied(const std::string& name, const Tensor& given, const Tensor& parameter) {
  if (!(given.shape() == parameter.shape()))
    fail("update: the gradient of {} has the wrong shape: {} for {}", name, *type_of(given),
         *type_of(parameter));
  Tensor wide = at_least_float32(parameter), gradient = astype(given, wide.dtype());
  double decay = decay_.by_parameter ? decay_.by_parameter(name, parameter) : decay_.value;
  if (decay != 0 && !decoupled_) gradient = gradient + decay * wide;
  Tensor made = apply_single(gradient, wide, moments_of(name, wide));
  if (decay != 0 && decoupled_) made = made - learning_rate_ * decay * wide;
  return astype(made, parameter.dtype());
}

void Optimizer::init(const TensorMap& parameters) {
  for (const auto& [name, parameter] : parameters) moments_of(name, at_least_float32(parameter));
}

/// What is remembered of a parameter, given in at least float32.
TensorMap& Optimizer::moments_of(const std::string& name, const Tensor& parameter) {
  auto [at, is_new] = moments_.try_emplace(name);
  if (is_new) init_single(parameter, at->second);
  return at->second;
}

void Optimizer::visit(nn::Visitor& visitor) {
  visitor.tensor({.path = {.name = "step"}, .tensor = step_});
  visitor.tensor({.path = {.name = "learning_rate"}, .tensor = learning_rate_});
  nn::Path root{.name = "moments"};
  for (auto& [name, moments] : moments_) {
    nn::Path parameter{&root, name};
    for (auto& [moment, tensor] : moments)
      visitor.tensor({.path = {&parameter, moment}, .tensor = tensor});
  }
}

nn::Visit Optimizer::as_visit() const {
  return [this](nn::Visitor& v) { const_cast<Optimizer*>(this)->visit(v); };
}

TensorMap Optimizer::state_dict() const { return nn::tensors_in(as_visit()); }

void Optimizer::load_state_dict(const TensorMap& state) {
  constexpr std::string_view kMoments = "moments.";
  std::map<std::string, TensorMap> moments;
  for (const auto& [name, tensor] : state) {
    size_t dot = name.rfind('.');
    if (name == "step")
      step_ = tensor;
    else if (name == "learning_rate")
      learning_rate_ = tensor;
    else if (name.starts_with(kMoments) && dot > kMoments.size())
      moments[name.substr(kMoments.size(), dot - kMoments.size())][name.substr(dot + 1)] = tensor;
    else
      fail("load_state_dict: an optimizer has no {}", name);
  }
  moments_ = std::move(moments);
}

}  // namespace tn::optim
