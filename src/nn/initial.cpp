#include "nn/initial.h"

#include <cmath>

namespace tn::nn {

Tensor drawn_uniform(const Shape& shape, int64_t inputs, const Drawn& drawn) {
  double bound = std::pow(static_cast<double>(inputs), -0.5);
  return random::uniform(shape, -bound, bound, drawn.type, drawn.key);
}

Tensor glorot_uniform(int64_t outputs, int64_t inputs, const Drawn& drawn) {
  double bound = std::sqrt(3.0) * std::sqrt(2.0 / static_cast<double>(inputs + outputs));
  return random::uniform({outputs, inputs}, -bound, bound, drawn.type, drawn.key);
}

}  // namespace tn::nn
