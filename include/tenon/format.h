#pragma once
// Tensors, shapes, sizes, element types and devices in std::format; tensors, devices in fmt too, if
// <fmt/format.h> is included before. `{}` is the text that `<<` writes, with the width and
// alignment of text.
#include <sstream>
#include <string>
#include <version>

#include "tenon/printing.h"

namespace tn {

template <class T>
concept IsPrinted =
    std::same_as<T, Tensor> || std::same_as<T, Selection> || std::same_as<T, Shape> ||
    std::same_as<T, Dim> || std::same_as<T, DType> || std::same_as<T, Device>;

std::string printed(const IsPrinted auto& x) {
  if constexpr (requires { x.to_string(std::source_location()); }) {
    return x.to_string(std::source_location());  // the place of the call is not known here
  } else {
    std::ostringstream text;
    text << x;
    return std::move(text).str();
  }
}

}  // namespace tn

#ifdef __cpp_lib_format
#include <format>

template <tn::IsPrinted T>
struct std::formatter<T> : std::formatter<std::string> {
  auto format(const T& x, auto& context) const {
    return std::formatter<std::string>::format(tn::printed(x), context);
  }
};
#endif

#ifdef FMT_VERSION
// The library has formatters of its own for shapes, sizes and element types, with other texts. A
// program that it is linked into has one definition of each, so there is none here.
template <tn::IsPrinted T>
  requires(!std::same_as<T, tn::Shape> && !std::same_as<T, tn::Dim> && !std::same_as<T, tn::DType>)
struct fmt::formatter<T> : fmt::formatter<std::string> {
  auto format(const T& x, auto& context) const {
    return fmt::formatter<std::string>::format(tn::printed(x), context);
  }
};
#endif
