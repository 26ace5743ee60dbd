#pragma once
// Storage: which buffers of a plan share memory, and when it is needed.
#include "plan/plan.h"

namespace tn {

/// The place of a buffer or step in a list.
inline size_t index(int32_t i) { return static_cast<size_t>(i); }

/// One piece of memory: that of a buffer, or of several that follow each other in place.
struct Storage {
  int32_t first, last;  // steps; a donated input begins before all, a result ends after all
  int64_t bytes;
  int32_t input = -1;  // the donated input it begins with
  bool kept = false;   // ends as a result of the plan
};

struct Storages {
  std::vector<Storage> all;
  std::vector<int32_t> of;  // by the plan's own buffers
};

/// `order` is that in which the steps will run. An output takes the place of an input when the
/// step allows it and no later step reads the input.
Storages find_storages(const Plan& plan, std::span<const int32_t> order);

}  // namespace tn
