#pragma once
// How products are to be computed where a device has several ways (tenon/matmul_precision.h): part
// of options, keys and plans.
#include <atomic>
#include <cstdint>
#include <string_view>

namespace tn {

enum class Products : uint8_t { highest, high, exact };
std::string_view name_of(Products products);

/// The setting of the process; tn::set_matmul_precision changes it.
inline constinit std::atomic<Products> products_setting = Products::highest;
inline Products wanted_products() { return products_setting.load(std::memory_order_relaxed); }

}  // namespace tn
