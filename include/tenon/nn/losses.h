#pragma once
// Losses besides `tn::cross_entropy`. `reduction` is "none" (one for each example), "mean" or
// "sum". Shapes must be equal: what would broadcast is an error.
#include <string_view>

#include "tenon/tensor.h"

namespace tn::nn {

/// The squared differences.
Tensor mse_loss(const Operand& predictions, const Operand& targets,
                std::string_view reduction = "mean");
/// The absolute differences.
Tensor l1_loss(const Operand& predictions, const Operand& targets,
               std::string_view reduction = "mean");
/// Half the squared difference up to `delta`, and from there on along its tangent.
Tensor huber_loss(const Operand& inputs, const Operand& targets, double delta = 1.0,
                  std::string_view reduction = "mean");
/// Minus the log of the probability of targets 0 and 1 (or between), from logits.
Tensor binary_cross_entropy(const Operand& logits, const Operand& targets,
                            std::string_view reduction = "mean");

}  // namespace tn::nn
