#pragma once
// Decision: an optimisation that the compiler made or rejected, and why.
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

/// Decisions in the order they were taken; kept only for reports.
using Decisions = std::vector<Decision>;

}  // namespace tn
