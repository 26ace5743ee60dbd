#pragma once
// What the values and stores of a kernel depend on. The interpreter, the machine code and the C
// source all build their loops on this.
#include <optional>

#include "loop/kernel.h"

namespace tn::loop {

constexpr AxisSet axis_bit(size_t axis) { return AxisSet{1} << axis; }

/// The values that a polynomial, a mask, a value or a store reads.
template <class F>
void for_each_value_in(const Kernel& kernel, PolyId poly, F&& f) {
  kernel.polys.for_each_atom(poly, [&](const Atom& atom) {
    if (atom.kind == AtomKind::value) f(static_cast<ValueId>(atom.a));
  });
}
template <class F>
void for_each_value_in(const Kernel& kernel, PolyId index, MaskId mask, F&& f) {
  for_each_value_in(kernel, index, f);
  if (mask == kNone) return;
  for (PolyId poly : kernel.masks[static_cast<size_t>(mask)]) for_each_value_in(kernel, poly, f);
}
template <class F>
void for_each_operand(const Kernel& kernel, const Value& v, F&& f) {
  int operands = facts(v.op).operands;
  if (operands > 0) f(v.a);
  if (operands > 1) f(v.b);
  if (operands > 2) f(v.c);
  if (v.op == Op::load || v.op == Op::index) for_each_value_in(kernel, v.index, v.mask, f);
}
template <class F>
void for_each_operand(const Kernel& kernel, const Store& store, F&& f) {
  f(store.value);
  for_each_value_in(kernel, store.index, store.mask, f);
}

/// The axes that a polynomial varies over, those of loaded values in it included.
AxisSet axes_in(const Kernel& kernel, PolyId poly);
AxisSet axes_in(const Kernel& kernel, const Term& term);
/// The same for `mask`; nothing for none.
AxisSet axes_in_mask(const Kernel& kernel, MaskId mask);

/// The factor of an axis where the polynomial is linear in it; nothing where it is not, or where
/// the factor has symbols.
std::optional<int64_t> stride_along(const Kernel& kernel, PolyId poly, int axis);
/// Whether each term with the axis is the axis times numbers and symbols.
bool is_linear_along(const Kernel& kernel, PolyId poly, int axis);
/// The symbols in the sizes and indices of a kernel, in the order of their names.
std::vector<Dim> symbols_in(const Kernel& kernel);

struct StoreFacts {
  AxisSet axes = 0;  // of its value, index and mask
  int level = 0;     // the reductions before it
};

/// Sweep k over the inner axes ends with the reductions of level k + 1.
struct Analysis {
  AxisSet par = 0, red = 0, scan = 0;
  std::vector<int> par_axes, inner_axes;  // outermost first; inner: red and scan
  std::vector<int> level;    // by value: reductions on the longest path to it, itself included
  int levels = 0;            // the highest that is needed
  std::vector<bool> needed;  // by value: some store depends on it
  std::vector<StoreFacts> stores;
  /// One set of red axes that every reduction runs over, or one scan axis with one direction.
  bool plain = true;

  AxisSet inner() const { return red | scan; }
};
Analysis analyse(const Kernel& kernel);

}  // namespace tn::loop
