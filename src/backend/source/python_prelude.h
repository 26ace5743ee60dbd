#pragma once
// Functions that written files have where they use them.
#include <span>
#include <string>
#include <string_view>

namespace tn::source {

/// One function of a prelude; its name begins with an underscore.
struct Helper {
  std::string_view name, text;
};
/// In place of a text: that of NumPy's helper, with the other library for `np`.
inline constexpr std::string_view kAsNumpy = {};
std::span<const Helper> numpy_helpers();
std::span<const Helper> torch_helpers();
std::span<const Helper> jax_helpers();

/// The functions that `text` calls, and those that they call, in the order they need.
std::string helpers_for(std::string_view target, std::string_view text);

}  // namespace tn::source
