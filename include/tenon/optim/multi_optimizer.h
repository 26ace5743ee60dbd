#pragma once
// MultiOptimizer: several optimizers for the parameters of one model.
//
//     auto is_bias = [](auto& name, const tn::Tensor&) { return name.ends_with("bias"); };
//     tn::optim::MultiOptimizer optimizer({is_bias}, tn::optim::SGD(0.1), tn::optim::AdamW(1e-3));
//     optimizer.watch(model.parameters());
#include <memory>

#include "tenon/optim/optimizer.h"

namespace tn::optim {

/// Assigns each parameter to the first optimizer whose filter accepts it; the last optimizer has no
/// filter and takes the rest. Its interface is that of other optimizers.
class MultiOptimizer {
 public:
  using Filter = Callback<bool(const std::string& name, const Tensor& parameter)>;

  template <class... O>
    requires(std::derived_from<O, Optimizer> && ...)
  explicit MultiOptimizer(std::vector<Filter> filters, O... optimizers)
      : filters_(std::move(filters)) {
    (optimizers_.push_back(std::make_unique<O>(std::move(optimizers))), ...);
    check();
  }

  template <class M>
  void update(nn::Module<M>& model, const TensorMap& gradients,
              std::source_location place = std::source_location::current()) {
    model.update(apply_gradients(gradients, model.state_dict(place), place), place);
  }
  TensorMap apply_gradients(const TensorMap& gradients, const TensorMap& parameters,
                            std::source_location place = std::source_location::current());
  /// Makes these the parameters of `step`.
  void watch(const nn::Parameters& parameters);
  /// Updates the parameters with the gradients that `backward()` stored.
  void step(std::source_location place = std::source_location::current());
  void zero_grad();

  /// In the order of the constructor.
  Optimizer& operator[](size_t i) { return *optimizers_[i]; }
  size_t size() const { return optimizers_.size(); }
  /// Of all of them.
  void set_learning_rate(const LearningRate& rate);

  std::string kind() const { return "MultiOptimizer"; }
  /// "optimizers.0.step" and so on.
  TensorMap state_dict() const;
  void load_state_dict(const TensorMap& state);

 private:
  void check() const;
  size_t number_of(const std::string& name, const Tensor& parameter) const;

  std::vector<Filter> filters_;
  std::vector<std::unique_ptr<Optimizer>> optimizers_;
};

}  // namespace tn::optim
