#pragma once
// LossScaler: training in float16, whose small gradients would underflow to 0.
#include "tenon/amp.h"
#include "tenon/optim/optimizer.h"

namespace tn::amp {

using nn::TensorMap;

/// Whether all tensors are free of infinities and NaNs.
Tensor all_finite(const Tensors& tensors);
Tensor all_finite(const TensorMap& tensors);

struct LossScalerSettings {
  /// Whether the scale grows by `growth` after `interval` steps with finite gradients, and shrinks
  /// by `backoff` when a gradient overflows.
  bool dynamic = true;
  double growth = 2, backoff = 0.5;
  int64_t interval = 2000;
};

/// Keeps gradients in the range of float16: scales the loss up and the gradients down. A step whose
/// gradients overflow leaves parameters and optimizer unchanged. That is decided on values inside
/// the step, so the step can be compiled: `tn::compile(f, std::tie(model, optimizer, scaler))`.
///
///     tn::amp::LossScaler scaler;
///     {
///       tn::amp::Autocast narrow(tn::float16);
///       loss = nn::cross_entropy(model(x), y);
///     }
///     scaler.scale(loss).backward();
///     scaler.step(optimizer);
///     optimizer.zero_grad();
class LossScaler {
 public:
  explicit LossScaler(double scale = 32768, const LossScalerSettings& settings = {},
                      nn::Place at = nn::Place::current());

  /// The scaled loss, which is to be differentiated.
  Tensor scale(const Tensor& loss, nn::Place at = nn::Place::current());
  /// The loss or the gradients from the scaled ones, in at least float32.
  Tensor unscale(const Tensor& scaled, nn::Place at = nn::Place::current()) const;
  TensorMap unscale(const TensorMap& gradients, nn::Place at = nn::Place::current()) const;
  /// `optimizer.update(model, gradients)` if the unscaled gradients are finite.
  template <class M>
  void update(optim::Optimizer& optimizer, nn::Module<M>& model, const TensorMap& gradients,
              nn::Place at = nn::Place::current()) {
    update_in(optimizer, model.as_visit(), gradients, at);
  }
  /// Unscales the gradients that `backward()` left in parameters, for clipping before `step`.
  void unscale_(optim::Optimizer& optimizer, nn::Place at = nn::Place::current());
  /// `optimizer.step()` if the gradients, unscaled here or before, are finite.
  void step(optim::Optimizer& optimizer, nn::Place at = nn::Place::current());

  std::string kind() const { return "LossScaler"; }
  TensorMap state_dict() const { return nn::tensors_in(as_visit()); }
  void load_state_dict(const TensorMap& state, nn::Place at = nn::Place::current());
  /// The scaler, as something to visit. Visitors of a constant one only look.
  nn::Visit as_visit() const;

 private:
  void update_in(optim::Optimizer& optimizer, const nn::Visit& model, const TensorMap& gradients,
                 const nn::Place& at);
  Tensor adjusted(const TensorMap& gradients);

  optim::Birth birth_;
  LossScalerSettings settings_;
  Tensor scale_, used_, good_steps_ = Tensor(0);  // of the next loss; of the last one
  std::set<const optim::Optimizer*> unscaled_;    // only compared
};

}  // namespace tn::amp
