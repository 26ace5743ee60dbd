// Tensors as people read them: tensor([[1, 2], [3, 4]], dtype=float32).

#include "base/text.h"
#include "ir/node.h"
#include "ir/values_text.h"
#include "tenon/tensor.h"

namespace tn {

std::string Tensor::to_string() const {
  std::string values = values_text(type_of(*this), data(), 7);
  std::string shape = size() == 0 ? format(", shape={}", tn::to_text(this->shape())) : "";
  return format("tensor({}{}, dtype={})", values, shape, tn::name_of(dtype()));
}

}  // namespace tn
