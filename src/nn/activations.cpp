#include "tenon/nn/activations.h"

#include "ir/place.h"
#include "tenon/operators.h"

namespace tn::nn {

/// A tensor to use more than once: the first op would consume a temporary.
static Tensor held(const Operand& x) {
  return x.tensor ? *x.tensor : Tensor::from_scalar(x.scalar);
}

Tensor gelu_fast_approx(const Operand& x) {
  LocScope at(x.place);
  Tensor each = held(x);
  return each * sigmoid(1.702 * each);
}

Tensor glu(const Operand& x, Axis axis) {
  LocScope at(x.place);
  Tensors halves = tn::split(x, 2, axis);
  return halves[0] * sigmoid(halves[1]);
}

Tensor hard_shrink(const Operand& x, double lambd) {
  LocScope at(x.place);
  Tensor each = held(x);
  return where(abs(each) <= lambd, 0, each);
}

Tensor prelu(const Operand& x, const Operand& weight) {
  LocScope at(x.place);
  Tensor each = held(x);
  return where(each > 0, each, weight * each);
}

Tensor relu2(const Operand& x) {
  LocScope at(x.place);
  return square(relu(x));
}

Tensor softmin(const Operand& x, Axis axis) {
  LocScope at(x.place);
  return softmax(-x, Axes{axis});
}

Tensor softshrink(const Operand& x, double lambd) {
  LocScope at(x.place);
  Tensor each = held(x);
  return where(abs(each) <= lambd, 0, each - sign(each) * lambd);
}

Tensor step(const Operand& x, double threshold) {
  LocScope at(x.place);
  Tensor each = held(x);
  return astype(each > threshold, each.dtype());
}

}  // namespace tn::nn
