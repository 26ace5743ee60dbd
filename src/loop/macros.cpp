#include "loop/macros.h"

#include <algorithm>

#include "loop/macro_value.h"

namespace tn::loop {
namespace {

class MathExpansion {
 public:
  MathExpansion(const Kernel& kernel, bool (*is_kept)(const Value&))
      : old_(kernel), is_kept_(is_kept), b_(kernel.name), pool_(b_) {
    b_.kernel() = kernel;
    b_.kernel().values.clear();
  }

  Kernel expanded() {
    for (const Value& v : old_.values) numbers_.push_back(is_macro(v) ? macro(v) : copy(v));
    for (Value& v : b_.kernel().values)
      if (v.op == Op::load || v.op == Op::index) v.index = renumbered(v.index);
    for (Mask& mask : b_.kernel().masks)
      for (PolyId& poly : mask) poly = renumbered(poly);
    for (Store& store : b_.kernel().stores) {
      store.index = renumbered(store.index);
      store.value = number(store.value);
    }
    return b_.finish();
  }

  bool is_macro(const Value& v) const { return facts(v.op).math && !(is_kept_ && is_kept_(v)); }

 private:
  ValueId number(ValueId old) const { return numbers_[static_cast<size_t>(old)]; }

  ValueId copy(Value v) {
    int operands = facts(v.op).operands;
    if (operands > 0) v.a = number(v.a);
    if (operands > 1) v.b = number(v.b);
    if (operands > 2) v.c = number(v.c);
    b_.kernel().values.push_back(v);
    return static_cast<ValueId>(b_.kernel().values.size()) - 1;
  }

  ValueId macro(const Value& v) {
    MacroNode x = pool_.of_value(number(v.a));
    MacroNode y = facts(v.op).operands > 1 ? pool_.of_value(number(v.b)) : x;
    if (v.narrow) return pool_.materialise(expand_narrow(v.op, Macro<float>{x}).node);
    if (v.type == DType::f32)
      return pool_.materialise(expand(v.op, Macro<float>{x}, Macro<float>{y}).node);
    return pool_.materialise(expand(v.op, Macro<double>{x}, Macro<double>{y}).node);
  }

  // Indices name loaded values by their numbers, which have changed.
  PolyId renumbered(PolyId poly) {
    PolyTable::AtomMap map;
    collect(poly, map);
    return b_.polys().substitute(poly, map);
  }

  void collect(PolyId poly, PolyTable::AtomMap& map) {
    PolyTable& t = b_.polys();
    for (const Term& term : std::vector<Term>(t[poly].terms)) {
      for (AtomId id : std::vector<AtomId>(t.atoms_of(term.mono))) {
        const Atom atom = t.atom(id);
        if (atom.kind == AtomKind::value) {
          auto now = static_cast<uint32_t>(number(static_cast<ValueId>(atom.a)));
          if (now != atom.a) map[id] = t.value(now, atom.range.lo, atom.range.hi);
        } else if (atom.kind != AtomKind::axis && atom.kind != AtomKind::symbol) {
          collect(atom.a, map);
          collect(atom.b, map);
        }
      }
    }
  }

  const Kernel& old_;
  bool (*is_kept_)(const Value&);
  Builder b_;
  MacroPool pool_;
  std::vector<ValueId> numbers_;  // new, by old
};

}  // namespace

Kernel expand_math(const Kernel& kernel, bool (*is_kept)(const Value&)) {
  MathExpansion expansion(kernel, is_kept);
  bool any =
      std::ranges::any_of(kernel.values, [&](const Value& v) { return expansion.is_macro(v); });
  return any ? expansion.expanded() : kernel;
}

}  // namespace tn::loop
