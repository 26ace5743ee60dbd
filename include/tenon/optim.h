#pragma once
// Optimizers: they compute new parameters from parameters and gradients.
//
//     tn::optim::AdamW optimizer(1e-3, {.weight_decay = 0.1});
//     auto [loss, gradients] = loss_and_grad(x, y);     // of tn::nn::value_and_grad
//     optimizer.update(model, gradients);
//
// or, with the gradients that backward() leaves in the parameters:
//
//     tn::optim::AdamW optimizer(model.parameters(), {.learning_rate = 1e-3});
//     loss.backward(), optimizer.step(), optimizer.zero_grad();
#include "tenon/optim/accumulate.h"
#include "tenon/optim/lbfgs.h"
#include "tenon/optim/loss_scaler.h"
#include "tenon/optim/multi_optimizer.h"
#include "tenon/optim/optimizers.h"
#include "tenon/optim/schedules.h"

namespace tn::optim {

struct Clipped {
  TensorMap gradients;
  Tensor norm;
};
/// The gradients scaled down to a norm of at most `max_norm`, and the norm they had: that of all
/// elements of all gradients together.
Clipped clip_grad_norm(const TensorMap& gradients, double max_norm,
                       std::source_location place = std::source_location::current());
/// The gradients with every element between `-clip_value` and `clip_value`.
TensorMap clip_grad_value(const TensorMap& gradients, double clip_value,
                          std::source_location place = std::source_location::current());
/// `clip_grad_norm` of the gradients that backward() left in parameters; the norm they had.
Tensor clip_grad_norm_(const nn::Parameters& parameters, double max_norm,
                       std::source_location place = std::source_location::current());
/// `clip_grad_value` of the gradients that backward() left in parameters.
void clip_grad_value_(const nn::Parameters& parameters, double clip_value,
                      std::source_location place = std::source_location::current());

}  // namespace tn::optim
