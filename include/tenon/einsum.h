#pragma once
// einsum with its operands as arguments.
#include "tenon/ops.h"

namespace tn {

///     tn::Tensor e = tn::einsum("ij,jk->ik", m, n);
template <class... T>
  requires(sizeof...(T) > 0 && (std::is_convertible_v<const T&, Tensor> && ...))
Tensor einsum(std::string_view equation, const T&... operands) {
  return einsum(equation, Tensors{operands...});
}

}  // namespace tn
