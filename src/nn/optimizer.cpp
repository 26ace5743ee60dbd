// The base of the optimizers.
#include "base/error.h"
#include "ir/node.h"
#include "ir/place.h"
#include "tenon/operators.h"
#include "tenon/optim.h"

namespace tn::optim {

void Optimizer::set_learning_rate(const LearningRate& rate) {
  schedule_ = rate.schedule;
  Tensor value = schedule_ ? schedule_(step_) : rate.value;
  if (!value || value.rank() != 0) fail("learning_rate: expected a scalar");
  learning_rate_ = astype(value, DType::f32);
}

NamedTensors Optimizer::apply_gradients(const NamedTensors& gradients,
                                        const NamedTensors& parameters,
                                        std::source_location place) {
  LocScope at(place);
  if (schedule_) learning_rate_ = astype(schedule_(step_), DType::f32);
  step_ = step_ + 1;
  NamedTensors made;
  for (const auto& [name, gradient] : gradients) {
    auto found = parameters.find(name);
    if (found == parameters.end()) fail("update: the model has no {}", name);
    const Tensor& parameter = found->second;
    if (!(gradient.shape() == parameter.shape()))
      fail("update: the gradient of {} is {}, the parameter {}", name, *type_of(gradient),
           *type_of(parameter));
    // Computed in at least float32, as the learning rate is, and rounded once.
    Tensor improved = apply_single(gradient, parameter, moments_of(name, parameter));
    made.emplace(name, astype(improved, parameter.dtype()));
  }
  return made;
}

void Optimizer::init(const NamedTensors& parameters) {
  for (const auto& [name, parameter] : parameters) moments_of(name, parameter);
}

NamedTensors& Optimizer::moments_of(const std::string& name, const Tensor& parameter) {
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

NamedTensors Optimizer::state_dict() const { return nn::tensors_in(as_visit()); }

void Optimizer::load_state_dict(const NamedTensors& state) {
  constexpr std::string_view kMoments = "moments.";
  std::map<std::string, NamedTensors> moments;
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
