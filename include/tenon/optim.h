#pragma once
// Optimizers: they compute new parameters from parameters and gradients.
//
//     tn::optim::AdamW optimizer(1e-3, {.weight_decay = 0.1});
//     auto [loss, gradients] = loss_and_grad(x, y);     // of tn::nn::value_and_grad
//     optimizer.update(model, gradients);
#include "tenon/optim/optimizers.h"

namespace tn::optim {

struct Clipped {
  TensorMap gradients;
  Tensor norm;
};
/// The gradients scaled down to a norm of at most `max_norm`, and the norm they had: that of all
/// elements of all gradients together.
Clipped clip_grad_norm(const TensorMap& gradients, double max_norm,
                       std::source_location place = std::source_location::current());

}  // namespace tn::optim
