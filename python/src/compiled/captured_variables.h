#pragma once
// Variables: tensors of a state that require gradients. They are known by their Python objects:
// optimizer.step() gives such an object another value, wherever it is held, and backward() leaves a
// gradient at it.
#include "compiled/captured_state.h"

namespace tn::python {

/// What a traced function does to a variable in every run.
struct VariableChange {
  enum class Gradient : uint8_t { stays, goes, comes };

  size_t tensor;  // among the arguments
  bool rebound;   // has another value
  bool required;  // still requires a gradient
  Gradient gradient;

  /// Makes the change, with the next of the results: the value, then the gradient.
  void apply(const CallArguments& args, std::span<Tensor>& results) const;
};

/// The variables while a function is traced: their objects hold its parameters, and in the end what
/// they held before.
class TracedVariables {
 public:
  /// Puts the objects in the place of those in `leaves`, which are of the arguments and the inputs.
  TracedVariables(const CallArguments& args, const Tensors& params, Leaves& leaves);
  ~TracedVariables();
  TracedVariables(const TracedVariables&) = delete;

  /// What the function did to variables in outputs; appends the tensors to `results`. Warns of what
  /// it did to others.
  std::vector<VariableChange> after_call(const TracedState& state, Tensors& results) const;

 private:
  struct Variable {
    size_t tensor;
    nb::object object;
    Tensor before, param, gradient;
  };
  std::vector<Variable> all_;
};

}  // namespace tn::python
