#pragma once
// Descriptions of inputs as people write them.
//
//     x=f32[8,16]                 a tensor of fixed sizes
//     x=f32[1:8:16,2]             a size between 1 and 16, fastest at 8
//     x=f32[batch=1:8:16,2]       with a name; sizes of one name are equal in every call
//     y=f32[batch,3]              a name that was used before
//     n=1:8:16                    a size by itself
#include "tenon/executable.h"

namespace tn {

class InputParser {
 public:
  /// Fails with what is wrong, in `text`.
  InputInfo parse(std::string_view text);

 private:
  DimensionInfo size(std::string_view text, std::string_view all);
  std::vector<DimensionInfo> named_;
};

/// As it is written: "x=f32[batch=1:8:16,2]".
std::string to_text(const InputInfo& input);
/// Without its name.
std::string type_text(const InputInfo& input);

}  // namespace tn
