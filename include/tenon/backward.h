#pragma once
// Gradients as PyTorch has them: tensors that require them, and losses that go backward.
//
//     tn::Tensor w = tn::array({1.f, 2.f});
//     tn::require_grad(w);
//     tn::backward(tn::sum(w * w));
//     tn::grad(w);                               // [2, 4]
#include <cstdint>

#include "tenon/tensor.h"

namespace tn {

/// Adds the derivative of `loss` to the gradient of every tensor that requires one and that it was
/// computed from. A loss with more than one element needs a cotangent of its type. What was kept to
/// compute derivatives is let go of, unless the graph is retained for another call.
void backward(const Tensor& loss, const Tensor& cotangent = {}, bool retain_graph = false);

/// Makes `x` a leaf of backward(), or an ordinary tensor again. Its handle may be bound anew, so
/// that the gradient is its own.
void require_grad(Tensor& x, bool wanted = true);
/// Whether backward() would have a gradient for it, or for what it was computed from.
bool requires_grad(const Tensor& x);
/// Whether it was not computed from tensors that require gradients.
bool is_leaf(const Tensor& x);

/// The gradient that backward() left, or a null tensor.
Tensor grad(const Tensor& x);
/// Puts another one there, of the type of `x`; null: none.
void set_grad(const Tensor& x, const Tensor& gradient);

/// Gives a variable another value of its type: whether it requires a gradient, and the gradient,
/// stay.
void rebind(Tensor& variable, Tensor value);

/// What is recorded on this thread from construction to destruction leads to leaves, or does not.
class GradMode {
 public:
  explicit GradMode(bool enabled);
  ~GradMode();
  GradMode(const GradMode&) = delete;

 private:
  uint8_t before_;
};
struct NoGrad : GradMode {
  NoGrad() : GradMode(false) {}
};
bool is_grad_enabled();
/// The same for good, on this thread.
void enable_grad(bool enabled = true);

}  // namespace tn
