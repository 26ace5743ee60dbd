#include "tenon/nn/losses.h"

#include "ir/node.h"
#include "ir/sizes.h"
#include "nn/checks.h"
#include "tenon/operators.h"

namespace tn::nn {
namespace {

/// The loss of each element, `of`, reduced. Ops are recorded at the place of the call.
template <class F>
Tensor reduced(std::string_view name, const Operand& inputs, const Operand& targets,
               std::string_view reduction, F of) {
  LocScope at(inputs.place);
  Tensor x = taken(inputs), y = taken(targets);
  if (!decide_equal(x.shape(), y.shape()))
    fail("{}: shapes differ: {} (inputs) and {} (targets)", name, *type_of(x), *type_of(y));
  Tensor loss = of(x, y);
  if (reduction == "mean") return mean(loss);
  if (reduction == "sum") return sum(loss);
  if (reduction != "none")
    fail("{}: reduction is 'none', 'mean' or 'sum', not '{}'", name, reduction);
  return loss;
}

}  // namespace

Tensor mse_loss(const Operand& predictions, const Operand& targets, std::string_view reduction) {
  return reduced("mse_loss", predictions, targets, reduction,
                 [](const Tensor& x, const Tensor& y) { return square(x - y); });
}

Tensor l1_loss(const Operand& predictions, const Operand& targets, std::string_view reduction) {
  return reduced("l1_loss", predictions, targets, reduction,
                 [](const Tensor& x, const Tensor& y) { return abs(x - y); });
}

Tensor huber_loss(const Operand& inputs, const Operand& targets, double delta,
                  std::string_view reduction) {
  if (!(delta > 0)) fail("huber_loss: delta must be positive, not {}", delta);
  return reduced("huber_loss", inputs, targets, reduction, [=](const Tensor& x, const Tensor& y) {
    Tensor size = abs(x - y), curved = minimum(size, delta);
    return 0.5 * square(curved) + delta * (size - curved);
  });
}

Tensor binary_cross_entropy(const Operand& logits, const Operand& targets,
                            std::string_view reduction) {
  return reduced("binary_cross_entropy", logits, targets, reduction,
                 [](const Tensor& x, const Tensor& y) { return softplus(x) - x * y; });
}

}  // namespace tn::nn
