#include "tenon/nn/sequential.h"

#include "base/error.h"

namespace tn::nn {

void Layer::fail_constant() {
  fail("Sequential: a layer that changes when it is called cannot be called in a constant model");
}

Tensor Sequential::forward(Tensor x) {
  for (Layer& layer : layers) x = layer(x);
  return x;
}

Tensor Sequential::forward(Tensor x) const {
  for (const Layer& layer : layers) x = layer(x);
  return x;
}

}  // namespace tn::nn
