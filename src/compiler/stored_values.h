#pragma once
// The values that the kernels of a set store, and the cost of recomputing each.
#include "compiler/kernel_set.h"

namespace tn {

/// A value in memory, and the ops that make it of others in memory.
struct StoredValue {
  Val value = kNoVal;
  int64_t bytes = 0;
  double cost = 0;             // of computing it, in nanoseconds
  std::vector<int> ops = {};   // in the order of the graph; without numbers
  std::vector<int> from = {};  // the stored values that they read
  bool kept = false;           // a result, or what a result is a view of
  bool repeatable = true;      // computing it twice does what computing it once does
};

struct StoredValues {
  std::vector<StoredValue> all;
  /// What runs at once.
  struct Item {
    std::vector<int> reads, writes;  // stored values
    std::vector<Val> inputs = {};    // of the graph
    bool effect = false;             // run for what it does
  };
  std::vector<Item> items;  // in the order of the set
};

/// `sizes` are those of the symbols.
StoredValues stored_values(const KernelSet& set, std::span<const Binding> sizes);

}  // namespace tn
