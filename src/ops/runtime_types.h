#pragma once
// Element types as the runtime's kernels name them.
#include "ir/dtype.h"
#include "runtime/element_kind.h"

namespace tn::ops {

/// Of any type but the float8 ones, which no kernel computes on.
constexpr Element element_of(DType type) {
  int i = static_cast<int>(type);
  return static_cast<Element>(type < DType::f8e4m3 ? i : i - 2);
}
static_assert(element_of(DType::b1) == Element::boolean && element_of(DType::u64) == Element::u64);
static_assert(element_of(DType::f16) == Element::f16 && element_of(DType::c128) == Element::c128);

}  // namespace tn::ops
