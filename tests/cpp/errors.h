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

/// The same without the place of the call.
template <class F>
std::string problem_in(F&& f) {
  std::string text = error_in(f);
  return text.substr(0, text.find('\n'));
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

}  // namespace tn
