#pragma once
// Reading and writing by index tensors in C.
#include "loop/c_call.h"
#include "ops/indexing.h"

namespace tn::ops {

/// Loops over what is read or written, in order. Indices are read in the loop that binds the last
/// of their axes.
class CIndexed {
 public:
  /// Indices are the operands from number `first` on.
  CIndexed(const source::CCall& call, const Axes& axes, int64_t batch_dims, size_t first,
           OutOfRange outside);

  std::string place;      // of the element in the indexed tensor
  std::string element;    // its number among those read or written
  std::string condition;  // "if (…) ", where indices may be dropped
  std::string in_loops(std::string_view statement) const;

 private:
  std::string loops_, indent_ = "  ";
};

}  // namespace tn::ops
