#pragma once
// What the values and stores of a kernel depend on, for those who print its loops.
#include "loop/kernel.h"

namespace tn::source {

using loop::AxisSet;
using loop::Kernel;
using loop::kNone;
using loop::MaskId;
using loop::Value;
using loop::ValueId;

inline AxisSet bit(size_t axis) { return AxisSet{1} << axis; }

class KernelFacts {
 protected:
  /// Fails where a size is not a number.
  explicit KernelFacts(const Kernel& kernel);

  const Value& value(ValueId id) const { return k_.values[static_cast<size_t>(id)]; }

  /// Every value and axis that an index and a mask read.
  template <class F>
  void for_each_atom(PolyId index, MaskId mask, F&& f) const {
    k_.polys.for_each_atom(index, f);
    if (mask == kNone) return;
    for (PolyId poly : k_.masks[static_cast<size_t>(mask)]) k_.polys.for_each_atom(poly, f);
  }

  bool is_empty(AxisSet axes) const {
    for (size_t k = 0; k < extents_.size(); ++k)
      if ((axes & bit(k)) && extents_[k] == 0) return true;
    return false;
  }

  template <class F>
  void for_each_operand(const Value& v, F&& f) const {
    if (v.op == loop::Op::reduce && is_empty(v.over)) return;
    int operands = loop::facts(v.op).operands;
    for (ValueId id :
         {operands > 0 ? v.a : kNone, operands > 1 ? v.b : kNone, operands > 2 ? v.c : kNone})
      if (id != kNone) f(id);
    if (v.op == loop::Op::load || v.op == loop::Op::index)
      for_each_atom(v.index, v.mask, [&](const Atom& atom) {
        if (atom.kind == AtomKind::value) f(static_cast<ValueId>(atom.a));
      });
  }

  Kernel k_;
  std::vector<int64_t> extents_;
  std::vector<int> level_;  // reductions on the longest path to a value
  int levels_ = 0;
  std::vector<AxisSet> store_axes_;
  AxisSet par_ = 0;

 private:
  void find_levels();
  void find_store_axes();
};

}  // namespace tn::source
