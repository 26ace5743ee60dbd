#pragma once
// Tensors in std::format, and in fmt where <fmt/format.h> is included before: `{}` is the text that
// `x.to_string()` gives, with the width and alignment of text.
#include <version>

#include "tenon/tensor.h"

#ifdef __cpp_lib_format
#include <format>

template <>
struct std::formatter<tn::Tensor> : std::formatter<std::string> {
  auto format(const tn::Tensor& x, auto& context) const {
    return std::formatter<std::string>::format(x.to_string(), context);
  }
};
#endif

#ifdef FMT_VERSION
template <>
struct fmt::formatter<tn::Tensor> : fmt::formatter<std::string> {
  auto format(const tn::Tensor& x, auto& context) const {
    return fmt::formatter<std::string>::format(x.to_string(), context);
  }
};
#endif
