#pragma once
// Products in the form in which NumPy has them: einsum with its operands as arguments, and dot.
#include "tenon/flat.h"
#include "tenon/ops.h"

namespace tn {

/// The equation of `einsum`, with the place of the call.
struct Equation {
  std::string_view text;
  std::source_location place;
  template <class T>
    requires std::is_convertible_v<const T&, std::string_view>
  Equation(const T& equation, std::source_location at = std::source_location::current())
      : text(equation), place(at) {}
};

///     tn::Tensor e = tn::einsum("ij,jk->ik", m, n);
template <class... T>
  requires(sizeof...(T) > 0 && (std::is_convertible_v<const T&, Tensor> && ...))
Tensor einsum(Equation equation, const T&... operands) {
  flat::Place here(equation.place);
  return einsum(equation.text, Tensors{operands...});
}

/// The inner product of vectors, `matmul` of matrices; for more axes the sum over the last axis of
/// `x1` and the second-to-last axis of `x2`.
inline Tensor dot(const Operand& x1, const Operand& x2) {
  auto rank = [](const Operand& x) { return x.tensor ? x.tensor->rank() : 0; };
  if (rank(x1) == 0 || rank(x2) == 0) return multiply(x1, x2);
  if (rank(x2) <= 2) return matmul(x1, x2);
  return tensordot(x1, x2, Ints{rank(x1) - 1}, Ints{rank(x2) - 2});
}

namespace linalg {

/// The norm of vectors, as `vector_norm`. That of matrices is `matrix_norm`.
inline Tensor norm(const Operand& x, const Maybe<Axes>& axis = {}, bool keepdims = false,
                   double ord = 2.0) {
  return vector_norm(x, axis, keepdims, ord);
}

}  // namespace linalg
}  // namespace tn
