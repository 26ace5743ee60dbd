#pragma once
// Optimizers: what makes new parameters from parameters and gradients.
//
//     tn::optim::AdamW optimizer(1e-3, {.weight_decay = 0.1});
//     auto [loss, gradients] = loss_and_grad(x, y);     // of tn::nn::value_and_grad
//     optimizer.update(model, gradients);
#include <array>
#include <source_location>

#include "tenon/nn/module.h"

namespace tn::optim {

using nn::NamedTensors;

/// A learning rate from the number of steps before.
using Schedule = std::function<Tensor(const Tensor& step)>;

/// A number, a scalar, or a schedule.
struct LearningRate {
  Tensor value;
  Schedule schedule = {};

  LearningRate(double number) : value(number) {}
  LearningRate(Tensor scalar) : value(std::move(scalar)) {}
  template <std::invocable<const Tensor&> F>
  requires(!std::convertible_to<F, double>) LearningRate(F f) : schedule(std::move(f)) {}
};

/// Optimizers are values: a copy goes on by itself. A class says in `apply_single` how one tensor
/// is improved, and in `init_single` what it remembers of it; what else it holds must stay as it
/// was made, since compiled functions take it for constant.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Puts new parameters into a model. `gradients` may leave some out.
  template <class M>
  void update(nn::Module<M>& model, const NamedTensors& gradients,
              std::source_location place = std::source_location::current()) {
    model.update(apply_gradients(gradients, model.state_dict(), place));
  }
  /// New parameters for those that have a gradient.
  NamedTensors apply_gradients(const NamedTensors& gradients, const NamedTensors& parameters,
                               std::source_location place = std::source_location::current());
  /// Remembers parameters as before their first step. Otherwise that happens at the first one.
  void init(const NamedTensors& parameters);

  const Tensor& step() const { return step_; }  // how often parameters were improved
  const Tensor& learning_rate() const { return learning_rate_; }
  void set_learning_rate(const LearningRate& rate);

  /// Everything it remembers, by name: "step", "learning_rate", "moments.out.weight.m".
  NamedTensors state_dict() const;
  /// Takes over what another one remembered.
  void load_state_dict(const NamedTensors& state);
  /// The optimizer, as something to visit. Visitors of a constant one only look.
  nn::Visit as_visit() const;

 protected:
  explicit Optimizer(const LearningRate& rate) { set_learning_rate(rate); }
  Optimizer(const Optimizer&) = default;
  Optimizer(Optimizer&&) = default;
  Optimizer& operator=(const Optimizer&) = default;
  Optimizer& operator=(Optimizer&&) = default;

  /// Puts into `moments` what is to be remembered of a parameter before its first step.
  virtual void init_single(const Tensor&, NamedTensors& /* moments */) const {}
  /// The new parameter; changes what is remembered of it.
  virtual Tensor apply_single(const Tensor& gradient, const Tensor& parameter,
                              NamedTensors& moments) const = 0;

 private:
  NamedTensors& moments_of(const std::string& name, const Tensor& parameter);
  void visit(nn::Visitor& visitor);

  Tensor step_ = Tensor(0), learning_rate_;
  Schedule schedule_;
  std::map<std::string, NamedTensors> moments_;  // by parameter
};

struct SGDSettings {
  double momentum = 0, weight_decay = 0, dampening = 0;
  bool nesterov = false;
};

/// Stochastic gradient descent, with momentum
///
///     v = momentum * v + (1 - dampening) * gradient
///     w = w - learning_rate * v
///
/// where the gradient is that of the loss plus `weight_decay / 2 * w**2`. With `nesterov` it is
/// `gradient + momentum * v` in place of `v`.
class SGD : public Optimizer {
 public:
  explicit SGD(const LearningRate& learning_rate, const SGDSettings& settings = {});

 private:
  void init_single(const Tensor& parameter, NamedTensors& moments) const override;
  Tensor apply_single(const Tensor& gradient, const Tensor& parameter,
                      NamedTensors& moments) const override;
  SGDSettings settings_;
};

struct AdamSettings {
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  bool bias_correction = true;
};

/// Adam (Kingma and Ba, 2015):
///
///     m = beta1 * m + (1 - beta1) * gradient
///     v = beta2 * v + (1 - beta2) * gradient**2
///     w = w - learning_rate * m / (sqrt(v) + eps)
///
/// `bias_correction` divides `m` and `v` by the sum of the weights of the gradients in them.
class Adam : public Optimizer {
 public:
  explicit Adam(const LearningRate& learning_rate, const AdamSettings& settings = {});

 protected:
  void init_single(const Tensor& parameter, NamedTensors& moments) const override;
  Tensor apply_single(const Tensor& gradient, const Tensor& parameter,
                      NamedTensors& moments) const override;

 private:
  AdamSettings settings_;
};

struct AdamWSettings {
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8, weight_decay = 0.01;
  bool bias_correction = true;
};

/// Adam that also moves parameters towards zero, by `learning_rate * weight_decay` of them.
class AdamW : public Adam {
 public:
  explicit AdamW(const LearningRate& learning_rate, const AdamWSettings& settings = {});

 private:
  Tensor apply_single(const Tensor& gradient, const Tensor& parameter,
                      NamedTensors& moments) const override;
  double weight_decay_;
};

}  // namespace tn::optim
