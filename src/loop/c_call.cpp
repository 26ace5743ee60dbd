#include "loop/c_call.h"

#include "base/error.h"

namespace tn::source {

std::string c_element(std::string_view name, const Strided& at) {
  return at.offset == 0 ? std::string(name) : format("{} + {}", name, at.offset);
}

std::string c_offset(const Strided& at) {
  std::vector<std::string> parts;
  if (at.offset != 0) parts.push_back(format("{}", at.offset));
  for (int k = 0; k < at.shape.rank(); ++k)
    if (at.strides[k] == 1)
      parts.push_back(format("i{}", k));
    else if (at.strides[k] != 0)
      parts.push_back(format("i{} * {}", k, at.strides[k]));
  return parts.empty() ? "0" : format("{}", join(parts, " + "));
}

std::string c_loops(const Shape& shape, std::string_view statement) {
  std::string text, indent = "  ";
  for (int k = 0; k < shape.rank(); ++k, indent += "  ")
    text += format("{0}for (int64_t i{1} = 0; i{1} < {2}; ++i{1})\n", indent, k, shape[k].value());
  return text + indent + std::string(statement) + "\n";
}

void c_needs_real(std::string_view op, const Type& type) {
  if (is_complex(type.dtype))
    unsupported(Hint{}, "c source: {} has no form in C for complex elements: {}", op, type);
}

}  // namespace tn::source
