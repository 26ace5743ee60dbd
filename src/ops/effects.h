#pragma once
// Ops with side effects. Each returns an empty tensor, which later ops depend on.
#include "ir/emit.h"

namespace tn::ops {

struct PrintAttrs {
  std::string_view text;
  bool anchored = false;  // the last operand only ties it to the steps of a loop
  static constexpr void fields(auto& a, auto&& f) {
    f("text", a.text, required), f("anchored", a.anchored);
  }
};

/// Operands: the condition, then values.
struct CheckAttrs {
  std::string_view text, place;
  bool anchored = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("text", a.text, required), f("place", a.place), f("anchored", a.anchored);
  }
};

}  // namespace tn::ops

namespace tn {

/// The callback that receives printed lines. Set by eval/.
extern void (*print_line)(std::string_view line);

}  // namespace tn
