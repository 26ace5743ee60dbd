#include "cli/input_text.h"

#include <cctype>
#include <charconv>
#include <optional>

#include "base/error.h"
#include "ir/dtype.h"

namespace tn {
namespace {

constexpr const char* kGrammar = "write name=f32[2,1:8:16,batch=1:8:16], or name=1:8:16 for a size";

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (size_t end; (end = text.find(at)) != text.npos; text.remove_prefix(end + 1))
    parts.push_back(text.substr(0, end));
  parts.push_back(text);
  return parts;
}

std::optional<int64_t> number(std::string_view text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// "8" or "1:8:16".
std::optional<DimensionInfo> range(std::string_view text) {
  std::vector<int64_t> values;
  for (std::string_view part : split(text, ':')) {
    std::optional<int64_t> value = number(part);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  if (values.size() == 1) return DimensionInfo(values[0]);
  if (values.size() != 3) return std::nullopt;
  return DimensionInfo(values[0], values[1], values[2]);
}

std::string size_text(const DimensionInfo& d) {
  std::string range =
      d.min == d.max ? format("{}", d.min) : format("{}:{}:{}", d.min, d.opt, d.max);
  return d.name.empty() ? range : format("{}={}", d.name, range);
}

}  // namespace

DimensionInfo InputParser::size(std::string_view text, std::string_view all) {
  size_t equals = text.find('=');
  std::string_view name = equals == text.npos ? "" : text.substr(0, equals);
  if (std::optional<DimensionInfo> found = range(text.substr(name.empty() ? 0 : equals + 1))) {
    if (found->min < 0 || found->min > found->opt || found->opt > found->max)
      fail(Hint{"write min:opt:max"}, "{}: not 0 <= min <= opt <= max: {}", all, text);
    found->name = name;
    if (!name.empty()) named_.push_back(*found);
    return *found;
  }
  for (const DimensionInfo& known : named_)
    if (known.name == text) return known;
  if (equals == text.npos && !text.empty() && std::isalpha(static_cast<unsigned char>(text[0])))
    fail(Hint{format("where a name is first used it has its range: {}=1:8:16", text)},
         "{}: the size {} has no range", all, text);
  fail(Hint{kGrammar}, "{}: not a size: \"{}\"", all, text);
}

InputInfo InputParser::parse(std::string_view text) {
  size_t equals = text.find('=');
  if (equals == text.npos || equals == 0)
    fail(Hint{kGrammar}, "{}: an input needs a name and a type", text);
  std::string_view type = text.substr(equals + 1);
  InputInfo input;
  input.name = text.substr(0, equals);
  if (range(type)) {
    input.shape = {size(type, text)}, input.dtype = DType::i64, input.is_size = true;
    return input;
  }
  size_t open = type.find('[');
  std::optional<DType> dtype = parse_dtype(type.substr(0, open));
  if (!dtype) fail(Hint{kGrammar}, "{}: no element type \"{}\"", text, type.substr(0, open));
  input.dtype = *dtype;
  if (open == type.npos) return input;
  if (!type.ends_with(']')) fail(Hint{kGrammar}, "{}: no ] at the end", text);
  std::string_view sizes = type.substr(open + 1, type.size() - open - 2);
  if (!sizes.empty())
    for (std::string_view part : split(sizes, ',')) input.shape.push_back(size(part, text));
  return input;
}

std::string type_text(const InputInfo& input) {
  std::vector<std::string> sizes;
  for (const DimensionInfo& d : input.shape) sizes.push_back(size_text(d));
  return input.is_size ? sizes.at(0) : format("{}[{}]", input.dtype, join(sizes, ","));
}

std::string to_text(const InputInfo& input) {
  return format("{}={}", input.name, type_text(input));
}

}  // namespace tn
