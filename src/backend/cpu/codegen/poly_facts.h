#pragma once
// What the indices of a kernel say: values, strides, symbols.
#include <optional>

#include "loop/refine_kernel.h"

namespace tn::cpu {

using loop::axes_in;

/// The values in a polynomial.
void find_values(const loop::Kernel& kernel, PolyId poly, std::vector<loop::ValueId>& found);
/// The factor of an axis where the polynomial is linear in it; nothing where it is not, or where
/// the factor has symbols.
std::optional<int64_t> stride_along(const loop::Kernel& kernel, PolyId poly, int axis);
/// Whether each term with the axis is the axis times numbers and symbols.
bool is_linear_along(const loop::Kernel& kernel, PolyId poly, int axis);
/// The symbols in the sizes and indices of a kernel, in the order of their names.
std::vector<Dim> symbols_in(const loop::Kernel& kernel);

}  // namespace tn::cpu
