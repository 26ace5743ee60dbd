#pragma once
// Residence: when values lie in memory if there is only so much of it.
#include "compiler/stored_values.h"

namespace tn {

/// An item is run, or a value that was dropped is computed again.
struct Turn {
  int item = -1, value = -1;  // the other one is -1
  bool operator==(const Turn&) const = default;
};

struct Residence {
  std::vector<Turn> turns;
  int64_t peak = 0;  // bytes of stored values
  double cost = 0;   // of what is computed again, in nanoseconds
};

/// Runs the items in `order`. Where values need more than `budget` bytes, some are dropped: those
/// that free most for the longest time and cost least to make again, from what is there then. Each
/// is computed again before the next item that reads it. What one item needs is there even beyond
/// the budget.
Residence reside(const StoredValues& values, std::span<const int32_t> order, int64_t budget);

}  // namespace tn
