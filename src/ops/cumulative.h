#pragma once
// What running sums are given, and products along an axis that derivatives need, without a
// division.
#include "ir/attrs.h"
#include "tenon/tensor.h"

namespace tn::ops {

enum class Running : uint8_t { sum, prod, max, min };
inline constexpr std::string_view kRunning[] = {"sum", "prod", "max", "min"};
constexpr ChoiceNames choice_names(Running) { return kRunning; }

struct CumulativeAttrs {
  Axis axis;
  Running mode = Running::sum;
  bool reverse = false;
  bool exclusive = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("axis", a.axis, required), f("mode", a.mode), f("reverse", a.reverse);
    f("exclusive", a.exclusive);
  }
};

/// At each element the product of all others along `axis`.
Tensor products_of_others(const Tensor& x, int axis);

}  // namespace tn::ops
