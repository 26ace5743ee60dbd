#pragma once
// LBFGS: a quasi-Newton method for losses that are the same at every evaluation.
//
//     tn::optim::LBFGS optimizer(std::tie(w), {.strong_wolfe = true});
//     tn::Tensor first = optimizer.step([&] {
//       optimizer.zero_grad();
//       tn::Tensor loss = tn::sum(w * w);
//       loss.backward();
//       return loss;
//     });
#include <source_location>

#include "tenon/nn/parameters.h"

namespace tn::optim {

struct LBFGSSettings {
  double learning_rate = 1;  // how far a step goes, or where the line search begins
  int max_iter = 20;
  Maybe<int> max_eval = {};        // evaluations of the closure in a step; default: 1.25 max_iter
  double tolerance_grad = 1e-7;    // the step ends when no gradient is larger
  double tolerance_change = 1e-9;  // the step ends when parameters or the loss change less
  int history_size = 100;
  bool strong_wolfe = false;  // a line search with the strong Wolfe conditions
};

/// LBFGS (Liu and Nocedal, 1989): steps along `-H g`, where `H` is an estimate of the inverse of
/// the Hessian from the last `history_size` changes of parameters and gradients. It reads
/// values of the loss, so it cannot be part of a compiled function; the closure may call one.
class LBFGS {
 public:
  explicit LBFGS(const nn::Parameters& parameters, const LBFGSSettings& settings = {});

  /// Evaluates `closure`, which computes the loss and its gradients, and updates the parameters,
  /// several times. Returns the first loss.
  Tensor step(const Callback<Tensor()>& closure,
              std::source_location place = std::source_location::current());
  /// Releases the gradients, which `backward()` would add to.
  void zero_grad();
  /// The parameters that are trained, in their places.
  std::vector<nn::Parameter> parameters() const { return nn::trained_in(model_); }

  int64_t steps() const { return steps_; }  // the number of updates
  double learning_rate() const { return settings_.learning_rate; }
  void set_learning_rate(double rate) { settings_.learning_rate = rate; }

  std::string kind() const { return "LBFGS"; }
  /// Its state: "changes.0", "gradient_changes.0", "last.direction" and so on.
  nn::TensorMap state_dict() const;
  void load_state_dict(const nn::TensorMap& state);

 private:
  struct Evaluated {
    double loss;
    Tensor gradient;
  };
  Evaluated evaluated(const Callback<Tensor()>& closure) const;
  Tensor flat_gradient() const;
  void iterate(const Callback<Tensor()>& closure, Evaluated now);
  Evaluated move_along(const Callback<Tensor()>& closure, const Evaluated& from, double slope,
                       double& length, int& evaluations, bool is_last);
  void remember(const Tensor& change, const Tensor& gradient_change);
  Tensor direction(const Tensor& gradient) const;
  void move(const Tensor& direction, double length) const;

  nn::Visit model_;
  LBFGSSettings settings_;
  int64_t steps_ = 0;
  Tensors changes_, gradient_changes_;     // the oldest first
  Tensor last_gradient_, last_direction_;  // of the end of the last step
  double last_length_ = 0;
};

}  // namespace tn::optim
