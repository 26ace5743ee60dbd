#pragma once
// First values of parameters. Without a key they come from the random state of the thread.
#include "tenon/random.h"

namespace tn::nn {

/// What is drawn beside a shape.
struct Drawn {
  DType type = DType::f32;
  Tensor key = {};
};

/// Uniform between plus and minus 1 / sqrt(`inputs`), the number of weights behind an output.
Tensor drawn_uniform(const Shape& shape, int64_t inputs, const Drawn& drawn = {});
/// Uniform numbers of standard deviation sqrt(2 / (inputs + outputs)) (Glorot and Bengio, 2010).
Tensor glorot_uniform(int64_t outputs, int64_t inputs, const Drawn& drawn = {});

}  // namespace tn::nn
