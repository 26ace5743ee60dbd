#pragma once
// Contraction of two tensors whose axes carry labels: what matmul, tensordot and einsum are made
// of.
#include "ir/attrs.h"
#include "tenon/tensor.h"

namespace tn::ops {

/// Axes are paired by position: lhs_contract[i] with rhs_contract[i], lhs_batch[i] with
/// rhs_batch[i].
struct DotAttrs {
  Axes lhs_contract, rhs_contract, lhs_batch, rhs_batch;
  static constexpr void fields(auto& a, auto&& f) {
    f("lhs_contract", a.lhs_contract, required), f("rhs_contract", a.rhs_contract, required);
    f("lhs_batch", a.lhs_batch), f("rhs_batch", a.rhs_batch);
  }
};

/// Axes of an operand that are neither batch nor contracted.
Axes free_axes(int rank, const Axes& batch, const Axes& contracted);

/// Several axes walked as one; not `merged` where they do not lie so.
struct Run {
  int64_t extent = 1, stride = 0;
  bool merged = true;
};
Run merge(const Shape& shape, const Ints& strides, const Axes& axes);

/// One character per axis.
using Labels = std::string;

/// Multiplies `x` and `y` and sums over the labels that are not in `out`, whose order the axes of
/// the result have. Labels are distinct within an operand; those of both agree in extent or are 1
/// on one side.
Tensor contract(Tensor x, Labels x_labels, Tensor y, Labels y_labels, const Labels& out);

/// The axes of `x`, named by `labels`, in the order of `out`, which has the same labels.
Tensor in_order(const Tensor& x, const Labels& labels, const Labels& out);

/// Sums the axes whose labels are not in `kept`; `labels` becomes what is left.
Tensor sum_except(const Tensor& x, Labels& labels, const Labels& kept);

}  // namespace tn::ops
