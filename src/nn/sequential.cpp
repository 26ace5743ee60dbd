#include "tenon/nn/sequential.h"

#include <atomic>

#include "nn/checks.h"

namespace tn::nn {

void Layer::fail_constant() {
  fail("Sequential: a layer that changes when it is called cannot be called in a constant model");
}

Layer::Held& Layer::fail_moved() {
  fail("Layer: there is no layer: it was moved to another place");
}

uint64_t Layer::next_state() {
  static std::atomic<uint64_t> states = 0;
  return states.fetch_add(1, std::memory_order_relaxed);
}

void Layer::visit_bytes(const void* bytes, size_t count, Visitor& visitor, const Path& path) {
  visitor.Visitor::text(path, {static_cast<const char*>(bytes), count});  // as words
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
