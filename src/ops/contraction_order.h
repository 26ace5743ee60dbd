#pragma once
// The cheapest order in which to multiply several labelled tensors in pairs.
#include <map>
#include <string>
#include <vector>

#include "ir/dim.h"

namespace tn::ops {

using LabelSizes = std::map<char, Dim>;

/// Takes terms `first` < `second` off the list and appends their product, whose labels are
/// `result`.
struct PairStep {
  size_t first, second;
  std::string result;
};

/// Fewest multiplications: exact for up to 8 terms, else the cheapest pair first. Sizes that are
/// not known count as a moderate number.
std::vector<PairStep> contraction_order(std::vector<std::string> terms, const std::string& out,
                                        const LabelSizes& sizes);

}  // namespace tn::ops
