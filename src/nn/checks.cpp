#include "nn/checks.h"

#include <algorithm>

#include "ir/node.h"
#include "ir/sizes.h"

namespace tn::nn {

Tensor taken(const Operand& x) {
  if (x.absent || (x.tensor && !x.tensor->defined()))
    fail(Fault::type, "expected a tensor, given none");
  if (x.temporary) return std::move(*const_cast<Tensor*>(x.tensor));
  return x.tensor ? *x.tensor : Tensor::from_scalar(x.scalar);
}

static bool is_rest(const PatternSize& size) {
  const auto* name = std::get_if<std::string_view>(&size);
  return name && *name == "...";
}

std::string to_text(const Pattern& pattern) {
  std::vector<std::string> sizes;
  for (const PatternSize& size : pattern)
    sizes.push_back(std::visit([](auto s) { return format("{}", s); }, size));
  return format("[{}]", join(sizes, ", "));
}

bool fits(const Shape& shape, Pattern pattern) {
  auto rest = std::ranges::find_if(pattern, is_rest);
  if (rest != pattern.end()) {
    auto more = shape.rank() - static_cast<int64_t>(pattern.size()) + 1;
    if (more < 0) return false;
    rest = pattern.erase(rest);
    pattern.insert(rest, static_cast<size_t>(more), std::string_view("any"));
  }
  if (static_cast<int64_t>(pattern.size()) != shape.rank()) return false;
  for (int i = 0; i < shape.rank(); ++i) {
    const auto* size = std::get_if<int64_t>(&pattern[static_cast<size_t>(i)]);
    if (size && !decide_equal(shape[i], *size)) return false;
  }
  return true;
}

void check_shape(std::string_view layer, const Tensor& x, const Pattern& pattern) {
  if (!fits(x.shape(), pattern))
    fail("{}: expected {}, given {}", layer, to_text(pattern), *type_of(x));
}

void check_sizes(std::string_view layer, std::initializer_list<NamedSize> sizes) {
  for (auto [name, size] : sizes)
    if (size < 1) fail("{}: {} must be a positive integer, not {}", layer, name, size);
}

void check_divides(std::string_view layer, NamedSize divisor,
                   std::initializer_list<NamedSize> sizes) {
  for (auto [name, size] : sizes)
    if (size % divisor.size != 0)
      fail("{}: {} must divide {}: {} and {}", layer, divisor.name, name, divisor.size, size);
}

Ints one_per_axis(std::string_view layer, std::string_view name, const Ints& given, int axes,
                  int64_t least) {
  bool one = given.size() == 1;
  bool small = std::ranges::any_of(given, [&](int64_t size) { return size < least; });
  if ((!one && given.size() != axes) || small) {
    std::vector<std::string> items;
    for (int64_t size : given) items.push_back(format("{}", size));
    fail("{}: {} must be an integer from {} on{}, not {}", layer, name, least,
         axes == 1 ? "" : format(", or {} of them", axes),
         one ? items[0] : format("[{}]", join(items, ", ")));
  }
  Ints each;
  for (int i = 0; i < axes; ++i) each.push_back(given[one ? 0 : i]);
  return each;
}

}  // namespace tn::nn
