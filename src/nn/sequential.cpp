#include "tenon/nn/sequential.h"

#include "nn/checks.h"

namespace tn::nn {

void Layer::fail_constant() {
  fail("Sequential: a layer that changes when it is called cannot be called in a constant model");
}

/// `x` through the layers of a constant model, or of one that may change.
template <class Model>
static Tensor through(Model& model, const Operand& x) {
  return computed(model, x, [&] {
    Tensor y = taken(x);
    for (auto& layer : model.layers) y = layer(y);
    return y;
  });
}

Tensor Sequential::operator()(const Operand& x) { return through(*this, x); }
Tensor Sequential::operator()(const Operand& x) const { return through(*this, x); }

}  // namespace tn::nn
