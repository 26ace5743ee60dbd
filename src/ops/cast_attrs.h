#pragma once
// Attributes of the conversions between element types, for the ops that are made of them.
#include "ir/attrs.h"

namespace tn::ops {

struct AstypeAttrs {
  DType dtype = DType::f32;
  static constexpr void fields(auto& a, auto&& f) { f("dtype", a.dtype, required); }
};

struct BitcastAttrs {
  DType dtype = DType::i32;
  static constexpr void fields(auto& a, auto&& f) { f("dtype", a.dtype, required); }
};

}  // namespace tn::ops
