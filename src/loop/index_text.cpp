// The text of indices, cases and chains of views, and its parsers.
#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/error.h"
#include "loop/index.h"

namespace tn::loop {
namespace {

std::string_view trim(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

// Splits at a separator outside brackets.
std::vector<std::string_view> split_at(std::string_view s, std::string_view separator) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t first = 0;
  for (size_t i = 0; i < s.size(); ++i) {
    depth += (s[i] == '(' || s[i] == '[') - (s[i] == ')' || s[i] == ']');
    if (depth == 0 && s.substr(i, separator.size()) == separator) {
      parts.push_back(trim(s.substr(first, i - first)));
      first = i + separator.size();
    }
  }
  parts.push_back(trim(s.substr(first)));
  return parts;
}

PolyId symbol_in(PolyTable& t, std::string_view name, std::span<const Dim> symbols) {
  for (Dim d : symbols)
    if (symbol_name(d) == name) return t.from_dim(d);
  return t.symbol(name, 1, Dim::kLargestSymbol);
}

/// Parses one chain of views, from the buffer outwards.
class AccessParser {
 public:
  AccessParser(PolyTable& t, std::span<const Dim> symbols, std::vector<std::string>& buffers)
      : t_(t), symbols_(symbols), buffers_(buffers) {}

  Access chain(std::string_view text) {
    std::vector<std::string_view> parts = split_at(text, " . ");
    Access access = source(parts[0]);
    for (size_t i = 1; i < parts.size(); ++i) access = view(std::move(access), parts[i]);
    return access;
  }

 private:
  PolyId size(std::string_view text) {
    return t_.parse(text, [&](std::string_view name) { return symbol_in(t_, name, symbols_); });
  }
  int64_t number(std::string_view text) {
    int64_t value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
      fail("access: expected a number: `{}`", text);
    return value;
  }
  int64_t keyed(std::string_view text, std::string_view key) {
    if (!text.starts_with(key)) fail("access: expected `{}`: `{}`", key, text);
    return number(trim(text.substr(key.size())));
  }
  Indices sizes(std::string_view list) {
    Indices result;
    for (std::string_view part : split_at(list, ",")) result.push_back(size(part));
    return result;
  }

  Access source(std::string_view text) {
    if (text.starts_with("concat(") && text.ends_with(")")) {
      std::vector<std::string_view> parts = split_at(text.substr(7, text.size() - 8), ";");
      int axis = static_cast<int>(keyed(parts.back(), "axis="));
      parts.pop_back();
      std::vector<Access> pieces;
      for (std::string_view part : parts) pieces.push_back(chain(part));
      return concat(t_, std::move(pieces), axis);
    }
    size_t open = text.find('[');
    if (open == std::string_view::npos || !text.ends_with("]"))
      fail("access: expected name[sizes]: `{}`", text);
    std::string name(trim(text.substr(0, open)));
    auto it = std::find(buffers_.begin(), buffers_.end(), name);
    auto number = static_cast<int32_t>(it - buffers_.begin());
    if (it == buffers_.end()) buffers_.push_back(name);
    return read(number, sizes(text.substr(open + 1, text.size() - open - 2)));
  }

  Access view(Access from, std::string_view text) {
    size_t open = text.find('(');
    if (open == std::string_view::npos || !text.ends_with(")"))
      fail("access: expected view(...): `{}`", text);
    std::string_view name = text.substr(0, open);
    std::string_view inside = text.substr(open + 1, text.size() - open - 2);
    std::vector<std::string_view> args = split_at(inside, ",");
    if (name == "reshape") return reshape(std::move(from), sizes(inside));
    if (name == "broadcast") return broadcast(std::move(from), sizes(inside));
    if (name == "permute") {
      std::vector<int> perm;
      for (std::string_view arg : args) perm.push_back(static_cast<int>(number(arg)));
      return permute(std::move(from), std::move(perm));
    }
    int axis = static_cast<int>(keyed(args[0], "ax"));
    if (name == "reverse") return reverse(std::move(from), axis);
    if (args.size() < 2) fail("access: too few arguments: `{}`", text);
    if (name == "roll") return roll(t_, std::move(from), axis, number(args[1]));
    if (name == "dilate") return dilate(t_, std::move(from), axis, number(args[1]));
    if (name == "slice") return sliced(std::move(from), axis, args[1]);
    if (name == "pad") return padded(std::move(from), axis, args[1]);
    if (name == "window" && args.size() == 4)
      return window(t_, std::move(from), axis, number(args[1]), keyed(args[2], "stride"),
                    keyed(args[3], "dil"));
    fail("access: unknown view: `{}`", text);
  }

  // start:+length step k
  Access sliced(Access from, int axis, std::string_view text) {
    size_t colon = text.find(":+"), step = text.find(" step ");
    if (colon == std::string_view::npos) fail("access: expected start:+length: `{}`", text);
    bool stepped = step != std::string_view::npos;
    std::string_view length =
        text.substr(colon + 2, stepped ? step - colon - 2 : std::string_view::npos);
    int64_t stride = stepped ? number(trim(text.substr(step + 6))) : 1;
    return slice(std::move(from), axis, size(text.substr(0, colon)), size(length), stride);
  }

  // lo k -> padded extent
  Access padded(Access from, int axis, std::string_view text) {
    size_t arrow = text.find("->");
    if (!text.starts_with("lo ") || arrow == std::string_view::npos)
      fail("access: expected lo k -> extent: `{}`", text);
    PolyId lo = size(text.substr(3, arrow - 3));
    return pad(std::move(from), axis, lo, size(text.substr(arrow + 2)));
  }

  PolyTable& t_;
  std::span<const Dim> symbols_;
  std::vector<std::string>& buffers_;
};

}  // namespace

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

std::string cases_text(const PolyTable& t, const Cases& cases, std::span<const std::string> names,
                       std::span<const std::string> buffers) {
  std::string text;
  for (const Case& c : cases) {
    if (!text.empty()) text += " , ";
    text += format("{}[{}]", buffers[static_cast<size_t>(c.buffer)], index_text(t, c.index, names));
    for (size_t i = 0; i < c.mask.size(); ++i)
      text += format("{}{}>=0", i == 0 ? " if " : " & ", index_text(t, c.mask[i], names));
  }
  return text.empty() ? "nothing" : text;
}

Access parse_access(PolyTable& t, std::string_view text, std::span<const Dim> symbols,
                    std::vector<std::string>& buffers) {
  return AccessParser(t, symbols, buffers).chain(trim(text));
}

}  // namespace tn::loop
