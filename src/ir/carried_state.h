#pragma once
// What a traced function assigns to modules, carried out of it beside its results.
#include <memory>
#include <span>
#include <string>

#include "tenon/tensor.h"

namespace tn {

/// The modules of C++ that a function changes while it is traced on this thread, until `take` or
/// the end. They get back what they held.
class CarriedState {
 public:
  virtual ~CarriedState() = default;
  /// What the function has assigned to modules; those among its `params` are copies of its own.
  virtual Tensors take(const Tensors& params) = 0;
  /// What a tensor of these was assigned to: "running_mean of a module".
  virtual std::string name(size_t i) const = 0;
  /// Assigns these in their places.
  virtual void assign(std::span<const Tensor> values) = 0;
};
/// Null where the program has no modules.
inline std::unique_ptr<CarriedState> (*watch_modules)() = nullptr;

}  // namespace tn
