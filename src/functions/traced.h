#pragma once
// Traced: what a function of tensors records when it runs on parameters.
#include "ir/graph.h"
#include "ir/sizes.h"
#include "tenon/flat.h"

namespace tn {

struct Traced {
  Graph graph;  // inputs: parameters, then leaves; outputs: results, then effects
  size_t results = 0;
  Tensors leaves;
  std::vector<std::shared_ptr<const void>> kept;  // rules of custom functions
  /// It captures values of an enclosing trace, so it is valid only inside that trace.
  bool bound = false;
  /// Some result leads back to tensors that require gradients, and backward() did not run inside.
  bool differentiable = false;
  std::vector<bool> leads;        // by result: whether it is such a one; running statistics are not
  std::vector<SizeGuard> guards;  // all assumptions about sizes
};

/// Runs `f` on parameters of these types; `sizes` are hints for the symbols in them. A failure of
/// `f` has no side effects.
Traced trace(const Function& f, std::span<const TypeRef> types, std::span<const Binding> sizes);

/// Whether a transform under way looks at what is computed from `t`.
bool is_watched(const Tensor& t);

}  // namespace tn
