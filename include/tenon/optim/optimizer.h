#pragma once
// The base class of optimizers, and of those that the library provides.
#include <initializer_list>
#include <memory>
#include <source_location>
#include <string_view>

#include "tenon/nn/module.h"

namespace tn::optim {

using nn::TensorMap;

/// A learning rate from the number of steps before.
using Schedule = Callback<Tensor(const Tensor& step)>;

/// A number, a scalar, or a schedule. By default that of the optimizer.
struct LearningRate {
  Tensor value;
  Schedule schedule = {};

  LearningRate() = default;
  LearningRate(double number, nn::Place at = nn::Place::current());
  LearningRate(Tensor scalar) : value(std::move(scalar)) {}
  template <std::invocable<const Tensor&> F>
    requires(!nn::IsModule<F>)
  LearningRate(F f) : schedule(std::move(f)) {}
  bool is_given() const { return value.defined() || schedule; }
};

/// A number, or a function of each parameter:
/// `[](auto& name, auto& w) { return w.rank() > 1 ? 0.1 : 0; }`.
struct WeightDecay {
  double value = 0;
  Callback<double(const std::string& name, const Tensor& parameter)> by_parameter = {};

  WeightDecay(double number) : value(number) {}
  template <std::invocable<const std::string&, const Tensor&> F>
  WeightDecay(F f) : by_parameter(std::move(f)) {}
};

/// For the library: when an object that has state was made. A copy is another object.
class Birth {
 public:
  Birth() noexcept;
  Birth(const Birth&) noexcept : Birth() {}
  Birth& operator=(const Birth&) { return *this; }
  /// Fails if the object, of which `state` is a tensor, is from outside of a function that is being
  /// compiled and no part of its state: it would never change.
  void check_tied(const Tensor& state, std::string_view what) const;

 private:
  uint64_t number_;
};

/// Computes new parameters from parameters and gradients. There are two ways to use one:
///
///     tn::optim::SGD optimizer(0.1);  // with gradients that were computed before
///     optimizer.update(model, gradients);
///
///     // With those that backward() leaves in the parameters:
///     tn::optim::SGD optimizer(model.parameters(), {.learning_rate = 0.1});
///     loss.backward(), optimizer.step(), optimizer.zero_grad();
///
/// Optimizers are values: a copy has its own state. A class defines in `apply_single` the update of
/// one tensor, and in `init_single` the state that it keeps per tensor. Other members must not
/// change, because compiled functions treat them as constants.
///
/// Weight decay adds that share of a parameter to its gradient. When `decoupled`, it subtracts
/// `learning_rate * weight_decay` of the parameter. Parameters narrower than float32 are updated in
/// float32 and rounded once; their state stays in float32.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Puts new parameters into a model. `gradients` may leave some out.
  template <class M>
  void update(nn::Module<M>& model, const TensorMap& gradients,
              std::source_location place = std::source_location::current()) {
    model.update(apply_gradients(gradients, model.state_dict(place), place), place);
  }
  /// New parameters for those that have a gradient.
  TensorMap apply_gradients(const TensorMap& gradients, const TensorMap& parameters,
                            std::source_location place = std::source_location::current());
  /// Creates the state of the parameters. By default the first step does so.
  void init(const TensorMap& parameters);

  /// Makes these the parameters of `step`: those that are trained require gradients from now on.
  /// Names of a second model begin with "1.", of a third with "2.".
  void watch(const nn::Parameters& parameters);
  /// Updates the watched parameters with the gradients that `backward()` stored. Parameters without
  /// a gradient do not change. Outside of compiled functions the step is evaluated on return.
  void step(std::source_location place = std::source_location::current());
  /// Releases the gradients, which `backward()` would add to.
  void zero_grad();
  /// The parameters of `step` that are trained, in their places.
  std::vector<nn::Parameter> parameters() const;

  const Tensor& steps() const { return step_; }  // the number of updates
  const Tensor& learning_rate() const { return learning_rate_; }
  void set_learning_rate(const LearningRate& rate);

  /// The name of the class, in checkpoints.
  virtual std::string kind() const { return "Optimizer"; }
  /// Its state by name: "step", "learning_rate", "moments.out.weight.m".
  TensorMap state_dict() const;
  /// Restores the state of another optimizer of this kind.
  void load_state_dict(const TensorMap& state);
  /// The optimizer, as something to visit. Visitors of a constant one only look.
  nn::Visit as_visit() const;

 protected:
  Optimizer(const LearningRate& rate, const WeightDecay& decay, bool decoupled = false);
  Optimizer(const Optimizer&) = default;
  Optimizer(Optimizer&&) = default;
  Optimizer& operator=(const Optimizer&) = default;
  Optimizer& operator=(Optimizer&&) = default;

  /// Puts the initial state of a parameter into `moments`.
  virtual void init_single(const Tensor&, TensorMap& /* moments */) const {}
  /// Returns the new parameter and updates its state.
  virtual Tensor apply_single(const Tensor& gradient, const Tensor& parameter,
                              TensorMap& moments) const = 0;

 private:
  Tensor applied(const std::string& name, const Tensor& gradient, const Tensor& parameter);
  TensorMap& moments_of(const std::string& name, const Tensor& parameter);
  void check_moments(const std::string& name, const Tensor& parameter);
  void visit(nn::Visitor& visitor);

  Birth birth_;
  Tensor step_ = Tensor(0), learning_rate_;
  Schedule schedule_;
  WeightDecay decay_;
  bool decoupled_;
  std::map<std::string, TensorMap> moments_;  // by parameter
  std::map<std::string, Shape> shapes_;       // of the parameters that these are known to fit
  std::vector<nn::Visit> models_;             // those of `step`
};

struct OptimizerDef;  // src/nn/optimizer_def.h

/// An optimizer of the library. Its rule is a record of src/nn/optimizers/, and the classes that
/// derive from it are generated (tenon/optim/optimizers.h).
class RuleOptimizer : public Optimizer {
 public:
  std::string kind() const override;

 protected:
  /// `options` are the hyper-parameters of the record, in order; a choice is its name. `setting` is
  /// the learning rate among the settings.
  RuleOptimizer(std::string_view name, const LearningRate& rate, const LearningRate& setting,
                const WeightDecay& decay, std::initializer_list<const void*> options,
                const nn::Place& at);
  void init_single(const Tensor& parameter, TensorMap& moments) const override;
  Tensor apply_single(const Tensor& gradient, const Tensor& parameter,
                      TensorMap& moments) const override;

 private:
  const OptimizerDef* def_;
  std::shared_ptr<const void> attrs_;
};

}  // namespace tn::optim
