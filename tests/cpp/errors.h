#pragma once
// What the library says when a call fails.
#include <string>
#include <string_view>

#include "tenon/error.h"

namespace tn {

/// The text of the error that `f` ends with; "" when it does not.
template <class F>
std::string error_in(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

}  // namespace tn
