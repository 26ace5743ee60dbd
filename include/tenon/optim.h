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

using nn::TensorMap;

/// A learning rate from the number of steps before.
using Schedule = std::function<Tensor(const Tensor& step)>;

/// A number, a scalar, or a schedule.
struct LearningRate {
  Tensor value;
  Schedule schedule = {};

  LearningRate(double number);
  LearningRate(Tensor scalar) : value(std::move(scalar)) {}
  template <std::invocable<const Tensor&> F>
  LearningRate(F f) : schedule(std::move(f)) {}
};

/// A number, or one for each parameter: `[](auto& name, auto& w) { return w.rank() > 1 ? 0.1 : 0;
/// }`
struct WeightDecay {
  double value = 0;
  std::function<double(const std::string& name, const Tensor& parameter)> by_parameter = {};

  WeightDecay(double number) : value(number) {}
  template <std::invocable<const std::string&, const Tensor&> F>
  WeightDecay(F f) : by_parameter(std::move(f)) {}
};

/// Optimizers are values: a copy goes on by itself. A class says in `apply_single` how one tensor
/// is improved, and in `init_single` what it remembers of it; what else it holds must stay as it
/// was made, since compiled functions take it for constant.
///
/// Weight decay adds that much of a parameter to its gradient, or, when `decoupled`, takes
/// `learning_rate * weight_decay` of it away. Parameters of less than float32 are updated in
/// float32, where what is remembered stays too, and rounded once.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Puts new parameters into a model. `gradients` may leave some out.
  template <class M>
  void update(nn::Module<M>& model, const TensorMap& gradients,
              std::source_location place = std::source_location::current()) {
    model.update(apply_gradients(gradients, model.state_dict(), place));
  }
  /// New parameters for those that have a gradient.
  TensorMap apply_gradients(const TensorMap& gradients, const TensorMap& parameters,
                            std::source_location place = std::source_location::current());
  /// Remembers parameters as before their first step. Otherwise that happens at the first one.
  void init(const TensorMap& parameters);

  const Tensor& step() const { return step_; }  // how often parameters were improved
  const Tensor& learning_rate() const { return learning_rate_; }
  void set_learning_rate(const LearningRate& rate);

  /// Everything it remembers, by name: "step", "learning_rate", "moments.out.weight.m".
  TensorMap state_dict() const;
  /// Takes over what another one of its kind remembered.
  void load_state_dict(const TensorMap& state);
  /// The optimizer, as something to visit. Visitors of a constant one only look.
  nn::Visit as_visit() const;

 protected:
  Optimizer(const LearningRate& rate, const WeightDecay& decay, bool decoupled = false);
  Optimizer(const Optimizer&) = default;
  Optimizer(Optimizer&&) = default;
  Optimizer& operator=(const Optimizer&) = default;
  Optimizer& operator=(Optimizer&&) = default;

  /// Puts into `moments` what is to be remembered of a parameter before its first step.
  virtual void init_single(const Tensor&, TensorMap& /* moments */) const {}
  /// The new parameter; changes what is remembered of it.
  virtual Tensor apply_single(const Tensor& gradient, const Tensor& parameter,
                              TensorMap& moments) const = 0;

 private:
  Tensor applied(const std::string& name, const Tensor& gradient, const Tensor& parameter);
  TensorMap& moments_of(const std::string& name, const Tensor& parameter);
  void visit(nn::Visitor& visitor);

  Tensor step_ = Tensor(0), learning_rate_;
  Schedule schedule_;
  WeightDecay decay_;
  bool decoupled_;
  std::map<std::string, TensorMap> moments_;  // by parameter
};

struct SGDSettings {
  double momentum = 0;
  WeightDecay weight_decay = 0.0;
  double dampening = 0;
  bool nesterov = false;
};

/// Stochastic gradient descent, with momentum
///
///     v = momentum * v + (1 - dampening) * gradient
///     w = w - learning_rate * v
///
/// where the first `v` is the gradient. With `nesterov` it is `gradient + momentum * v` in place of
/// `v`.
class SGD : public Optimizer {
 public:
  explicit SGD(const LearningRate& learning_rate, const SGDSettings& settings = {});

 private:
  void init_single(const Tensor& parameter, TensorMap& moments) const override;
  Tensor apply_single(const Tensor& gradient, const Tensor& parameter,
                      TensorMap& moments) const override;
  double momentum_, dampening_;
  bool nesterov_;
};

struct AdamSettings {
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  WeightDecay weight_decay = 0.0;
  bool bias_correction = true, amsgrad = false;
};

/// Adam (Kingma and Ba, 2015):
///
///     m = beta1 * m + (1 - beta1) * gradient
///     v = beta2 * v + (1 - beta2) * gradient**2
///     w = w - learning_rate * m / (sqrt(v) + eps)
///
/// `bias_correction` divides `m` and `v` by the sum of the weights of the gradients in them. With
/// `amsgrad` the largest `v` so far is taken.
class Adam : public Optimizer {
 public:
  explicit Adam(const LearningRate& learning_rate, const AdamSettings& settings = {})
      : Adam(learning_rate, settings, false) {}

 protected:
  Adam(const LearningRate& learning_rate, const AdamSettings& settings, bool decoupled);

 private:
  void init_single(const Tensor& parameter, TensorMap& moments) const override;
  Tensor apply_single(const Tensor& gradient, const Tensor& parameter,
                      TensorMap& moments) const override;
  std::array<double, 2> betas_;
  double eps_;
  bool bias_correction_, amsgrad_;
};

/// Adam with decoupled weight decay (Loshchilov and Hutter, 2019): large gradients do not decay
/// less.
class AdamW : public Adam {
 public:
  explicit AdamW(const LearningRate& learning_rate,
                 const AdamSettings& settings = {.weight_decay = 0.01})
      : Adam(learning_rate, settings, true) {}
};

struct LionSettings {
  std::array<double, 2> betas = {0.9, 0.99};
  WeightDecay weight_decay = 0.0;
};

/// Lion (Chen and others, 2023), whose steps all have one size, with decoupled weight decay:
///
///     w = w - learning_rate * sign(beta1 * m + (1 - beta1) * gradient)
///     m = beta2 * m + (1 - beta2) * gradient
///
/// Its learning rate is 3 to 10 times smaller than that of AdamW, and its weight decay larger.
class Lion : public Optimizer {
 public:
  explicit Lion(const LearningRate& learning_rate, const LionSettings& settings = {});

 private:
  void init_single(const Tensor& parameter, TensorMap& moments) const override;
  Tensor apply_single(const Tensor& gradient, const Tensor& parameter,
                      TensorMap& moments) const override;
  std::array<double, 2> betas_;
};

struct Clipped {
  TensorMap gradients;
  Tensor norm;
};
/// The gradients scaled down to a norm of at most `max_norm`, and the norm they had: that of all
/// elements of all gradients together.
Clipped clip_grad_norm(const TensorMap& gradients, double max_norm,
                       std::source_location place = std::source_location::current());

}  // namespace tn::optim
