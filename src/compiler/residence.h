#pragma once
// Residence: which values stay in memory, and when, under a memory budget.
#include "compiler/stored_values.h"

namespace tn {

/// An item runs, or a dropped value is rematerialised.
struct Turn {
  int item = -1, value = -1;  // the other one is -1
  bool operator==(const Turn&) const = default;
};

struct Residence {
  std::vector<Turn> turns;
  int64_t peak = 0;  // bytes of stored values
  double cost = 0;   // of rematerialisation, in nanoseconds
};

/// Schedules the items in `order`. Where values need more than `budget` bytes, it drops those that
/// free most memory for the longest time at the least cost. Each is rematerialised before the next
/// item that reads it. The operands of one item are resident even beyond the budget.
Residence reside(const StoredValues& values, std::span<const int32_t> order, int64_t budget);

}  // namespace tn
