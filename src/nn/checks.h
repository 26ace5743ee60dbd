#pragma once
// What layers check: their arguments when they are made, and the shapes they are given.
#include <variant>

#include "base/error.h"
#include "ir/place.h"
#include "tenon/nn/module.h"

namespace tn::nn {

/// What a layer computes from `x`: ops are recorded at the place of the user's call, and an error
/// has the path to the layer.
template <class L, class F>
decltype(auto) computed(const L& layer, const Operand& x, F&& f) {
  LocScope at(x.place);
  return called(layer, f);
}

/// The tensor of an operand, for those who need it more than once.
Tensor taken(const Operand& x);

/// A size, the name of any size, or "..." for any number of axes.
using PatternSize = std::variant<int64_t, std::string_view>;
using Pattern = std::vector<PatternSize>;
/// "[batch, 3, ...]"
std::string to_text(const Pattern& pattern);
/// Whether a tensor of this shape has the pattern.
bool fits(const Shape& shape, Pattern pattern);
/// Fails unless `x`, which is defined, has a shape like `pattern`.
void check_shape(std::string_view layer, const Tensor& x, const Pattern& pattern);

struct NamedSize {
  std::string_view name;
  int64_t size;
};
/// Fails unless all are positive.
void check_sizes(std::string_view layer, std::initializer_list<NamedSize> sizes);
/// Fails unless `divisor` divides the sizes.
void check_divides(std::string_view layer, NamedSize divisor,
                   std::initializer_list<NamedSize> sizes);

/// One number for all axes, or one for each, as one for each. Fails for fewer than `least`.
Ints one_per_axis(std::string_view layer, std::string_view name, const Ints& given, int axes,
                  int64_t least = 1);

}  // namespace tn::nn
