// Substitution, evaluation at a point, and copying between tables.
#include <algorithm>

#include "base/error.h"
#include "ir/poly.h"

namespace tn {
namespace {

int64_t floor_quotient(int64_t a, int64_t b) {
  int64_t q = a / b;
  return a % b < 0 ? q - 1 : q;
}

}  // namespace

PolyId PolyTable::replace_atom(AtomId id, const AtomMap& map, AtomMap& done, bool through_axes) {
  if (auto it = map.find(id); it != map.end()) return it->second;
  if (auto it = done.find(id); it != done.end()) return it->second;
  Atom atom = atoms_[id];
  auto inner = [&](PolyId p) { return rewrite(p, map, done, through_axes); };
  PolyId result = kNoPoly;
  switch (atom.kind) {
    case AtomKind::axis:
      result = through_axes ? axis(atom.a, inner(atom.b)) : atom_poly(id);
      break;
    case AtomKind::value:
    case AtomKind::symbol:
      result = atom_poly(id);
      break;
    case AtomKind::mod:
      result = mod(inner(atom.a), inner(atom.b));
      break;
    case AtomKind::div:
      result = div(inner(atom.a), inner(atom.b));
      break;
    case AtomKind::min:
      result = min(inner(atom.a), inner(atom.b));
      break;
    case AtomKind::max:
      result = max(inner(atom.a), inner(atom.b));
      break;
  }
  done[id] = result;
  return result;
}

PolyId PolyTable::rewrite(PolyId p, const AtomMap& map, AtomMap& done, bool through_axes) {
  Poly poly = polys_[p];
  PolyId sum = constant(poly.c0);
  for (const Term& t : poly.terms) {
    PolyId product = constant(t.coef);
    for (AtomId id : std::vector<AtomId>(monos_[t.mono]))
      product = mul(product, replace_atom(id, map, done, through_axes));
    sum = add(sum, product);
  }
  return sum;
}

PolyId PolyTable::substitute(PolyId p, const AtomMap& map) {
  AtomMap done;
  return map.empty() ? p : rewrite(p, map, done, false);
}

PolyId PolyTable::bind(PolyId p, std::span<const Binding> bindings) {
  AtomMap map, done;
  for (const Binding& b : bindings)
    if (auto id = as_atom(from_dim(b.symbol))) map[*id] = constant(b.value);
  return rewrite(p, map, done, true);
}

int64_t PolyTable::evaluate_atom(AtomId id, const PointValues& at) const {
  const Atom& atom = atoms_[id];
  switch (atom.kind) {
    case AtomKind::axis:
      invariant(atom.a < at.axes.size(), "evaluate: no value for axis {}", atom.a);
      return at.axes[atom.a];
    case AtomKind::value:
      invariant(atom.a < at.values.size(), "evaluate: no loaded index {}", atom.a);
      return at.values[atom.a];
    case AtomKind::div:
      return floor_quotient(evaluate(atom.a, at), std::max<int64_t>(evaluate(atom.b, at), 1));
    case AtomKind::mod: {
      int64_t x = evaluate(atom.a, at), d = std::max<int64_t>(evaluate(atom.b, at), 1);
      return x - floor_quotient(x, d) * d;
    }
    case AtomKind::min:
      return std::min(evaluate(atom.a, at), evaluate(atom.b, at));
    case AtomKind::max:
      return std::max(evaluate(atom.a, at), evaluate(atom.b, at));
    case AtomKind::symbol:
      break;
  }
  for (const SymbolValue& s : at.symbols)
    if (s.name == names_[atom.a] && s.range.lo == atom.range.lo && s.range.hi == atom.range.hi)
      return s.value;
  fail("size: no value is given for {}", names_[atom.a]);
}

int64_t PolyTable::evaluate(PolyId p, const PointValues& at) const {
  const Poly& poly = polys_[p];
  int64_t sum = poly.c0;
  for (const Term& t : poly.terms) {
    int64_t product = t.coef;
    for (AtomId id : monos_[t.mono]) {
      if (__builtin_mul_overflow(product, evaluate_atom(id, at), &product))
        fail("size: {} does not fit in 64 bits", text(p, {}));
    }
    if (__builtin_add_overflow(sum, product, &sum))
      fail("size: {} does not fit in 64 bits", text(p, {}));
  }
  return sum;
}

bool PolyTable::has_only_symbols(PolyId p) const {
  for (const Term& t : polys_[p].terms) {
    for (AtomId id : monos_[t.mono]) {
      const Atom& atom = atoms_[id];
      if (atom.kind == AtomKind::symbol) continue;
      if (is_leaf(atom.kind)) return false;
      if (!has_only_symbols(atom.a) || !has_only_symbols(atom.b)) return false;
    }
  }
  return true;
}

bool PolyTable::has_values(PolyId p) const {
  bool any = false;
  for_each_atom(p, [&](const Atom& atom) { any |= atom.kind == AtomKind::value; });
  return any;
}

PolyId PolyTable::copy_from(const PolyTable& other, PolyId p) {
  const Poly& poly = other.polys_[p];
  PolyId sum = constant(poly.c0);
  for (const Term& t : poly.terms) {
    PolyId product = constant(t.coef);
    for (AtomId id : other.monos_[t.mono]) {
      const Atom& atom = other.atoms_[id];
      auto inner = [&](PolyId q) { return copy_from(other, q); };
      PolyId factor = kNoPoly;
      switch (atom.kind) {
        case AtomKind::symbol:
          factor = symbol(other.names_[atom.a], atom.range.lo, atom.range.hi);
          break;
        case AtomKind::axis:
          factor = axis(atom.a, inner(atom.b));
          break;
        case AtomKind::value:
          factor = value(atom.a, atom.range.lo, atom.range.hi);
          break;
        case AtomKind::div:
          factor = div(inner(atom.a), inner(atom.b));
          break;
        case AtomKind::mod:
          factor = mod(inner(atom.a), inner(atom.b));
          break;
        case AtomKind::min:
          factor = min(inner(atom.a), inner(atom.b));
          break;
        case AtomKind::max:
          factor = max(inner(atom.a), inner(atom.b));
          break;
      }
      product = mul(product, factor);
    }
    sum = add(sum, product);
  }
  return sum;
}

}  // namespace tn
