#include "nn/checks.h"

#include <algorithm>

#include "ir/node.h"
#include "ir/sizes.h"

namespace tn::nn {

Tensor taken(const Operand& x) {
  if (x.absent || (x.tensor && !*x.tensor)) fail(Fault::type, "expected a tensor, given none");
  if (x.temporary) return std::move(*const_cast<Tensor*>(x.tensor));
  return x.tensor ? *x.tensor : Tensor::from_scalar(x.scalar);
}

static bool is_rest(const PatternSize& size) {
  const auto* name = std::get_if<std::string_view>(&size);
  return name && *name == "...";
}

static bool fits(const Shape& shape, std::vector<PatternSize> pattern) {
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

void check_shape(std::string_view layer, const Operand& x, std::vector<PatternSize> pattern) {
  if (!x.tensor || !*x.tensor) fail(Fault::type, "{}: expected a tensor", layer);
  if (fits(x.tensor->shape(), pattern)) return;
  std::vector<std::string> expected;
  for (const PatternSize& size : pattern)
    expected.push_back(std::visit([](auto s) { return format("{}", s); }, size));
  fail("{}: expected [{}], given {}", layer, join(expected, ", "), *type_of(*x.tensor));
}

void check_sizes(std::string_view layer, std::initializer_list<NamedSize> sizes) {
  for (auto [name, size] : sizes)
    if (size < 1) fail("{}: {} must be positive, not {}", layer, name, size);
}

void check_divides(std::string_view layer, NamedSize divisor,
                   std::initializer_list<NamedSize> sizes) {
  for (auto [name, size] : sizes)
    if (size % divisor.size != 0)
      fail("{}: {} must divide {}: {} and {}", layer, divisor.name, name, divisor.size, size);
}

}  // namespace tn::nn
