#pragma once
// What a call of the library is as C: the rule `c` of an op writes it.
#include <string>

#include "base/text.h"
#include "ir/opdef.h"

namespace tn::source {

/// A graph among the attributes, as `NAME(const void *const *inputs, void *const *outputs, void
/// *arena)`.
struct CBody {
  std::string name;
  int64_t arena = 0;  // bytes, aligned to 64
};

/// A rule returns the statements of a function. Its parameters are the operands `x0`, `x1`, …,
/// which lie where `at` says, the results `y0`, …, which are row-major, and `scratch`, if it wants
/// some. Functions of the prelude are printed where their names occur.
struct CCall {
  Types in, out;
  std::span<const Strided> at;
  std::span<const CBody> bodies = {};
  int64_t scratch = 0;  // set by the rule: the bytes it needs, aligned to 64
};

/// The first element of an operand: "x0 + 12".
std::string c_element(std::string_view name, const Strided& at);
/// Where element (i0, i1, …) lies: "12 + i0 * 4 + i1".
std::string c_offset(const Strided& at);
/// `statement` in loops over i0, i1, … of a shape.
std::string c_loops(const Shape& shape, std::string_view statement);
/// Fails for elements that are pairs of numbers.
void c_needs_real(std::string_view op, const Type& type);

}  // namespace tn::source
