#pragma once
// The cost of recomputing an op, compared with reading its result.
#include "ir/graph.h"
#include "loop/kernel.h"
#include "plan/target.h"

namespace tn {

/// Scalar operations of an elementwise op per element, found by building its expression. A math
/// function counts as kMathCost.
int scalar_cost(const OpDef& op, const void* attrs, DType type);
inline constexpr int kMathCost = 20;

/// The scalar operations of a kernel under construction.
int cost_of(const loop::Kernel& kernel);

/// The elementwise ops behind a value down to what is read from memory.
struct Cone {
  int cost = 0;             // scalar operations per element
  std::vector<Val> leaves;  // tensors read that are about as large as the value
};

/// By op; meaningful for elementwise ops. `sizes` of the symbols say how large tensors are.
std::vector<Cone> find_cones(const Graph& graph, const std::vector<int>& producer,
                             std::span<const Binding> sizes);

/// Of a tensor with these sizes for symbols.
int64_t elements_at(TypeRef type, std::span<const Binding> sizes);

/// What computing an op takes, about.
struct OpWork {
  double nanoseconds = 0;  // with operands in the caches
  double multiply_adds = 0;
};
OpWork work_of(const Graph& graph, const GraphOp& op, std::span<const Binding> sizes,
               const Target& target);

}  // namespace tn
