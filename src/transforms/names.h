#pragma once
// What errors of transforms call an argument or a result, and the one for derivatives of another
// type.
#include "base/text.h"
#include "tenon/flat.h"

namespace tn::flat {

using NameOf = std::string (*)(const Names&, size_t);

inline std::string argument_name(const Names& names, size_t i) {
  return names.argument ? names.argument(i) : format("argument {}", i);
}
inline std::string result_name(const Names& names, size_t i) {
  return names.result ? names.result(i) : format("result {}", i);
}

/// A tangent or cotangent of `x` as one of its type; `name` is what errors call `x`.
Tensor fitting(const Tensor& given, const Tensor& x, std::string_view what, const Names& names,
               const std::string& name);

}  // namespace tn::flat
