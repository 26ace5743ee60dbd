#pragma once
// What errors of transforms call an argument or a result.
#include "base/text.h"
#include "tenon/transforms.h"

namespace tn {

using NameOf = std::string (*)(const Names&, size_t);

inline std::string argument_name(const Names& names, size_t i) {
  return names.argument ? names.argument(i) : format("argument {}", i);
}
inline std::string result_name(const Names& names, size_t i) {
  return names.result ? names.result(i) : format("result {}", i);
}

}  // namespace tn
