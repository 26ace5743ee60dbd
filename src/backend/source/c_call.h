#pragma once
// What a call of the library is as C.
#include "backend/source/spelling.h"

namespace tn::source {

/// A graph among the attributes, as `NAME(const void *const *inputs, void *const *outputs, void
/// *arena)`.
struct CBody {
  std::string name;
  int64_t arena = 0;  // bytes, aligned to 64
};

/// A spelling returns the statements of a function. Its parameters are the operands `x0`, `x1`, …,
/// which lie where `at` says, the results `y0`, …, which are row-major, and `scratch`, if it wants
/// some. Functions of the prelude are printed where their names occur.
struct CCall {
  const OpDef& op;
  Types in, out;
  std::span<const Strided> at;
  std::span<const CBody> bodies = {};
  int64_t scratch = 0;  // set by the spelling: the bytes it needs, aligned to 64

  /// Fails for elements that are pairs of numbers.
  void needs_real() const {
    if (is_complex(in[0]->dtype))
      unsupported(Hint{}, "c source: {} has no form in C for complex elements: {}", op.name,
                  *in[0]);
  }
};

using CSpelling = Spelling<CCall>;
/// Null for an op that has no form in C.
const CSpelling* c_spelling(const OpDef& op);
/// Of products, convolutions and windows.
const CSpelling* c_product_spelling(const OpDef& op);

}  // namespace tn::source
