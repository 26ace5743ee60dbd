#pragma once
// Functions that written files have where they use them.
#include <string>
#include <string_view>

namespace tn::source {

/// The functions of the prelude of `target` (text/numpy_prelude.py and others) that `text` calls,
/// and those that they call, in the order they need.
std::string helpers_for(std::string_view target, std::string_view text);

}  // namespace tn::source
