#pragma once
// Text formatting: the one place that knows which formatting library is used.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>
#include <utility>

namespace tn {

using fmt::format_string;
using fmt::join;

/// Objects, not functions: an unqualified call with a std::string would find std::format too, which
/// newer standard libraries bring along with <chrono>, and be ambiguous.
struct Format {
  template <class... A>
  std::string operator()(format_string<A...> text, A&&... args) const {
    return fmt::format(text, std::forward<A>(args)...);
  }
};
struct FormatTo {
  template <class Out, class... A>
  auto operator()(Out out, format_string<A...> text, A&&... args) const {
    return fmt::format_to(out, text, std::forward<A>(args)...);
  }
};
inline constexpr Format format{};
inline constexpr FormatTo format_to{};

/// The name in `known` closest to `word`, or an empty view when none is near: for "did you mean".
template <class Range>
std::string_view nearest_name(std::string_view word, const Range& known);

/// Number of single-character edits between `a` and `b`.
int edit_distance(std::string_view a, std::string_view b);

template <class Range>
std::string_view nearest_name(std::string_view word, const Range& known) {
  std::string_view best;
  int limit = static_cast<int>(word.size() + 2) / 3;
  for (std::string_view name : known) {
    int distance = edit_distance(word, name);
    if (distance > limit || (distance == limit && !best.empty())) continue;
    best = name;
    limit = distance;
  }
  return best;
}

}  // namespace tn
