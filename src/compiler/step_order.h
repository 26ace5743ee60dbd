#pragma once
// Orders in which the steps of a plan may run.
#include "plan/plan.h"

namespace tn {

/// For each step, those that must run before it and after it; one may be there several times.
class StepDependences {
 public:
  explicit StepDependences(const Plan& plan);
  std::vector<std::vector<int32_t>> before, after;

 private:
  void add(int32_t earlier, int32_t later);
};

/// The steps as they stand: 0, 1, 2 …
std::vector<int32_t> program_order(const Plan& plan);

/// Whether the steps may run in this order, which has each of them once.
bool is_order(const Plan& plan, std::span<const int32_t> order);

/// Other orders that respect what the steps read, write and do: depth first from the results, so
/// that what is needed together is made together; and by least growth, where the step that adds
/// least to the memory in use goes first.
std::vector<int32_t> depth_first_order(const Plan& plan);
std::vector<int32_t> least_growth_order(const Plan& plan);

}  // namespace tn
