#pragma once
// Derivatives and batching of one op, from the one rule its record has. Null tensors are zeros.
#include "ir/graph.h"

namespace tn {

/// One application of an op: what it was given and what it gave.
struct Application {
  const OpDef& op;
  const void* attrs;
  const Tensors& in;
  const Tensors& out;
};

/// Whether derivatives with respect to values of this type exist.
inline bool is_differentiable(DType type) { return is_inexact(type); }

/// Tangents of the results from those of the operands.
Tensors jvp_of(const Application& a, const Tensors& tangents);
/// Cotangents of the operands for which `wanted` holds, from those of the results.
Tensors vjp_of(const Application& a, const Tensors& cotangents, const std::vector<bool>& wanted);
/// The results on a batch of `size` examples: batched operands, and the results, have the batch as
/// axis 0.
Tensors batch_of(const OpDef& op, const void* attrs, const Tensors& in,
                 const std::vector<bool>& batched, Dim size);

/// The same for an op without a rule: a scan over the examples.
Tensors batch_by_scan(const OpDef& op, const void* attrs, const Tensors& in,
                      const std::vector<bool>& batched, Dim size);

/// `ct` summed over the axes along which `shape` was broadcast to reach it.
Tensor sum_to(const Tensor& ct, const Shape& shape);
Tensor zeros_of(TypeRef type);

}  // namespace tn
