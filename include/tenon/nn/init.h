#pragma once
// Initializers: functions of a tensor that return a new one of its shape and type. They draw from
// the random state of the thread. For a weight [outputs, inputs, kernel axes ...], `fan_in` is
// inputs times kernel elements, and `fan_out` is outputs times kernel elements.
//
//     for (auto& [name, w] : model.parameters())
//       if (w.rank() > 1) w = tn::nn::init::he_normal()(w);
#include <string_view>

#include "tenon/callback.h"
#include "tenon/tensor.h"

namespace tn::nn::init {

using Initializer = Callback<Tensor(const Tensor& like)>;

/// `value` everywhere.
Initializer constant(double value);
/// Uniform numbers in [low, high).
Initializer uniform(double low = 0, double high = 1);
Initializer normal(double mean = 0, double std = 1);
/// The identity matrix.
Initializer identity();
/// Numbers with standard deviation `gain * sqrt(2 / (fan_in + fan_out))`.
Initializer glorot_uniform(double gain = 1);
Initializer glorot_normal(double gain = 1);
/// Numbers with standard deviation `gain / sqrt(fan)`; without a gain it is sqrt(2), for `relu`.
/// `mode` is "fan_in" or "fan_out".
Initializer he_uniform(std::string_view mode = "fan_in", Maybe<double> gain = {});
Initializer he_normal(std::string_view mode = "fan_in", Maybe<double> gain = {});
/// `gain` times a random matrix with orthonormal rows or columns, whichever are fewer. All axes
/// after the first are flattened.
Initializer orthogonal(double gain = 1);
/// Normal numbers with a fraction `sparsity` of zeros in each column.
Initializer sparse(double sparsity, double mean = 0, double std = 1);

}  // namespace tn::nn::init
