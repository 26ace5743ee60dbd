#include "tenon/optim/multi_optimizer.h"

#include "base/error.h"
#include "ir/place.h"
#include "tenon/backward.h"

namespace tn::optim {
namespace {

/// Shows a visitor the tensors of one optimizer.
struct Filtered final : nn::Visitor {
  nn::Visitor& to;
  const Callback<bool(const std::string&, const Tensor&)>& takes;
  Filtered(nn::Visitor& to, const Callback<bool(const std::string&, const Tensor&)>& takes)
      : to(to), takes(takes) {}
  void module(const nn::Path& path, nn::ModuleBase& module, VisitModule* visit) override {
    to.module(path, module, visit);
  }
  void tensor(const nn::Slot& slot) override {
    if (!slot.is_absent() && takes(slot.path.dotted(), slot.tensor)) to.tensor(slot);
  }
  void setting(const nn::Path& path, uint64_t bits) override { to.setting(path, bits); }
};

}  // namespace

void MultiOptimizer::check() const {
  if (optimizers_.size() != filters_.size() + 1)
    fail("MultiOptimizer: {} filters for {} optimizers; the last optimizer has none",
         filters_.size(), optimizers_.size());
}

size_t MultiOptimizer::number_of(const std::string& name, const Tensor& parameter) const {
  size_t i = 0;
  while (i < filters_.size() && !filters_[i](name, parameter)) ++i;
  return i;
}

TensorMap MultiOptimizer::apply_gradients(const TensorMap& gradients, const TensorMap& parameters,
                                          std::source_location place) {
  std::vector<TensorMap> parts(size());
  for (const auto& [name, gradient] : gradients) {
    auto found = parameters.find(name);
    size_t number = found == parameters.end() ? size() - 1 : number_of(name, found->second);
    parts[number].emplace(name, gradient);
  }
  TensorMap made;
  for (size_t i = 0; i < size(); ++i)
    if (!parts[i].empty()) made.merge(optimizers_[i]->apply_gradients(parts[i], parameters, place));
  return made;
}

void MultiOptimizer::watch(const nn::Parameters& parameters) {
  for (size_t i = 0; i < size(); ++i) {
    // The filters are copied: the optimizer may be moved.
    Callback<bool(const std::string&, const Tensor&)> takes =
        [filters = filters_, i](const std::string& name, const Tensor& parameter) {
          for (size_t k = 0; k < filters.size(); ++k)
            if (filters[k](name, parameter)) return k == i;
          return i == filters.size();
        };
    optimizers_[i]->watch(
        nn::Parameters(nn::Visit([all = parameters.as_visit(), takes](nn::Visitor& visitor) {
          Filtered filtered(visitor, takes);
          all(filtered);
        })));
  }
}

void MultiOptimizer::step(std::source_location place) {
  LocScope at(place);
  auto has_gradient = [](const std::unique_ptr<Optimizer>& each) {
    return std::ranges::any_of(each->parameters(), [](const nn::Parameter& parameter) {
      return grad(parameter.tensor).defined();
    });
  };
  bool any = std::ranges::any_of(optimizers_, has_gradient);
  for (const std::unique_ptr<Optimizer>& each : optimizers_)
    if (!any || has_gradient(each)) each->step(place);  // none has one: the first one says so
}

void MultiOptimizer::zero_grad() {
  for (const std::unique_ptr<Optimizer>& each : optimizers_) each->zero_grad();
}

void MultiOptimizer::set_learning_rate(const LearningRate& rate) {
  for (const std::unique_ptr<Optimizer>& each : optimizers_) each->set_learning_rate(rate);
}

TensorMap MultiOptimizer::state_dict() const {
  TensorMap state;
  for (size_t i = 0; i < size(); ++i)
    for (auto& [name, tensor] : optimizers_[i]->state_dict())
      state.emplace(format("optimizers.{}.{}", i, name), tensor);
  return state;
}

void MultiOptimizer::load_state_dict(const TensorMap& state) {
  std::vector<TensorMap> parts(size());
  size_t taken = 0;
  for (size_t i = 0; i < size(); ++i) {
    std::string prefix = format("optimizers.{}.", i);
    for (const auto& [name, tensor] : state)
      if (name.starts_with(prefix)) parts[i].emplace(name.substr(prefix.size()), tensor), ++taken;
  }
  if (taken != state.size())
    fail("load_state_dict: {} of {} tensors belong to these {} optimizers", taken, state.size(),
         size());
  for (size_t i = 0; i < size(); ++i) optimizers_[i]->load_state_dict(parts[i]);
}

}  // namespace tn::optim
