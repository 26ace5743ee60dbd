// Gradients scaled down to a norm.
#include "base/error.h"
#include "ir/place.h"
#include "tenon/operators.h"
#include "tenon/optim.h"

namespace tn::optim {

Clipped clip_grad_norm(const TensorMap& gradients, double max_norm, std::source_location place) {
  LocScope at(place);
  if (gradients.empty()) fail("clip_grad_norm: there are no gradients");
  if (!(max_norm >= 0)) fail("clip_grad_norm: max_norm must be at least 0, not {}", max_norm);
  Tensors squares;
  for (const auto& [name, gradient] : gradients)
    squares.push_back(sum(square(astype(gradient, promote(gradient.dtype(), DType::f32)))));
  Tensor norm = sqrt(sum(stack(squares)));
  Tensor scale = minimum(max_norm / (norm + 1e-6), 1);
  TensorMap scaled;
  for (const auto& [name, gradient] : gradients)
    scaled.emplace(name, astype(gradient * scale, gradient.dtype()));
  return {std::move(scaled), norm};
}

}  // namespace tn::optim
