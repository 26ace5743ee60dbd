// Tensors as people read them: tensor([[1., 2.], [3., 4.]], dtype=float32).

#include <ostream>

#include "base/text.h"
#include "ir/node.h"
#include "ir/values_text.h"
#include "tenon/printing.h"
#include "tenon/tensor.h"

namespace tn {

std::string Tensor::to_string(Place at) const {
  LocScope scope(at);
  constexpr std::string_view kBegin = "tensor(";
  Tensor here = to(Device());
  std::string text = std::string(kBegin) + values_text(type_of(here), here.data(), kBegin.size());
  std::string type = format("dtype={})", tn::name_of(dtype()));
  if (!device().is_host())
    type.insert(type.size() - 1, format(", device='{}'", tn::to_text(device())));
  if (size() == 0) type = format("shape={}, {}", tn::to_text(this->shape()), type);
  size_t line = text.size() - (text.rfind('\n') + 1);
  bool wraps = line + 2 + type.size() > static_cast<size_t>(print_options().linewidth);
  return text + (wraps ? ",\n" + std::string(kBegin.size(), ' ') : ", ") + type;
}

std::ostream& operator<<(std::ostream& out, const Printed& x) {
  return out << x.tensor.to_string(x.place);
}
std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << to_text(shape); }
std::ostream& operator<<(std::ostream& out, Dim size) { return out << to_text(size); }
std::ostream& operator<<(std::ostream& out, DType type) { return out << name_of(type); }
std::ostream& operator<<(std::ostream& out, Device device) { return out << to_text(device); }

}  // namespace tn
