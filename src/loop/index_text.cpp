// The text of indices, and its parser.
#include <charconv>

#include "base/error.h"
#include "loop/index.h"

namespace tn::loop {
static PolyId symbol_in(PolyTable& t, std::string_view name, std::span<const Dim> symbols) {
  for (Dim d : symbols)
    if (symbol_name(d) == name) return t.from_dim(d);
  return t.symbol(name, 1, Dim::kLargestSymbol);
}

std::string index_text(const PolyTable& t, PolyId p, std::span<const std::string> names) {
  return t.text(p, {.axis_names = names});
}

PolyId parse_index(PolyTable& t, std::string_view text, std::span<const std::string> names,
                   std::span<const PolyId> extents, std::span<const Dim> symbols) {
  return t.parse(text, [&](std::string_view name) {
    for (size_t k = 0; k < names.size(); ++k)
      if (names[k] == name) return t.axis(static_cast<uint32_t>(k), extents[k]);
    if (name[0] == '$') {
      uint32_t number = 0;
      auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), number);
      if (error != std::errc() || end != name.data() + name.size())
        fail("index: expected a number after $: `{}`", name);
      return t.value(number, INT64_MIN, INT64_MAX);
    }
    return symbol_in(t, name, symbols);
  });
}

}  // namespace tn::loop
