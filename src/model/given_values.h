#pragma once
// What an evaluation of a physical model is given: by name, checked, and as a list.
#include "model/model_functions.h"

namespace tn::model {

/// What an open size may be.
struct SizeRange {
  int64_t least = 0, most = Dim::kLargestSymbol;
};

struct GivenValues {
  const Values& params;
  const Values& data;
  const Values* state = nullptr;  // null: none
  /// Constants, and first states where none is given.
  const Values& own;
  std::map<std::string, SizeRange> ranges = {};  // of open sizes, by name
};

/// The values that the functions take, in their order. Fails for names, types and shapes that are
/// not those of the model.
Tensors gather(const Functions& functions, const GivenValues& given);
/// Cotangents of the outputs; null: zero.
Tensors output_cotangents(const Functions& functions, const Values& given);

}  // namespace tn::model
