#pragma once
// Gradients as PyTorch has them: tensors that require them, and losses that go backward.
//
//     tn::Tensor w = tn::array({1.f, 2.f});
//     tn::require_grad(w);
//     tn::backward(tn::sum(w * w));
//     tn::grad(w);                               // [2, 4]
#include <cstdint>
#include <source_location>

#include "tenon/tensor.h"

namespace tn {

/// Adds the derivative of `loss` to the gradient of every tensor that requires one and that it was
/// computed from. A loss with more than one element needs a cotangent of its type. The graph is
/// released, unless it is retained for another call.
void backward(const Tensor& loss, const Tensor& cotangent = {}, bool retain_graph = false,
              std::source_location at = std::source_location::current());

/// Makes `x` a leaf of backward(), or an ordinary tensor again. `x` may be bound to a new node, so
/// that it does not share its gradient.
void require_grad(Tensor& x, bool wanted = true,
                  std::source_location at = std::source_location::current());
/// Whether backward() would compute a gradient for `x` or for a tensor it was computed from.
bool requires_grad(const Tensor& x);
/// Whether `x` is a leaf: not computed from tensors that require gradients.
bool is_leaf(const Tensor& x);

/// The gradient that backward() accumulated, or a null tensor.
Tensor grad(const Tensor& x, std::source_location at = std::source_location::current());
/// Replaces the gradient by one of the type of `x`, or removes it (null).
void set_grad(const Tensor& x, const Tensor& gradient,
              std::source_location at = std::source_location::current());

/// Assigns a new value of the same type to a variable. Its gradient, and whether it requires one,
/// stay.
void rebind(Tensor& variable, Tensor value,
            std::source_location at = std::source_location::current());

/// Enables or disables gradient recording on this thread, from construction to destruction.
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
/// Enables or disables gradient recording on this thread permanently.
void enable_grad(bool enabled = true);

}  // namespace tn
