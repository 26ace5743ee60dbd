#include "plan/product_setting.h"

#include <algorithm>

#include "base/error.h"
#include "tenon/matmul_precision.h"

namespace tn {
namespace {

constexpr std::string_view kNames[] = {"highest", "high", "exact"};

}  // namespace

std::string_view name_of(Products products) { return kNames[static_cast<size_t>(products)]; }

std::string_view set_matmul_precision(std::string_view precision) {
  const auto* found = std::ranges::find(kNames, precision);
  if (found == std::end(kNames))
    fail("set_matmul_precision: \"highest\", \"high\" or \"exact\" is needed, not \"{}\"",
         precision);
  return name_of(products_setting.exchange(static_cast<Products>(found - kNames)));
}

std::string_view matmul_precision() { return name_of(wanted_products()); }

}  // namespace tn
