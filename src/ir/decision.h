#pragma once
// Decision: what the compiler did or refused, and why.
#include <string>
#include <string_view>
#include <vector>

#include "ir/place.h"

namespace tn {

struct Decision {
  std::string_view pass;  // "fuse", "layout"
  bool made = true;
  std::string what;    // "max, subtract, exp, sum, divide in one kernel"
  std::string reason;  // "rows of 4096 elements fit the cache"
  Loc loc = {};
};

/// Decisions in the order they were taken; none are kept where nobody asked.
using Decisions = std::vector<Decision>;

}  // namespace tn
