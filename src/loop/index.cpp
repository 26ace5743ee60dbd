#include "loop/index.h"

#include <algorithm>

#include "base/error.h"

namespace tn::loop {
std::vector<PolyId> coordinates(PolyTable& t, PolyId flat, std::span<const PolyId> shape) {
  std::vector<PolyId> index(shape.size());
  for (size_t k = shape.size(); k-- > 0;) {
    if (k == 0) {
      // What is left is in range already, unless the axis has one element.
      index[0] = shape[0] == 1 ? 0 : flat;
    } else {
      DivMod digit = t.divmod(flat, shape[k]);
      index[k] = digit.remainder;
      flat = digit.quotient;
    }
  }
  return index;
}

namespace {

// p >= 0 is (p div g) >= 0; worth it when the remainder closes, for then it vanishes.
PolyId divide_mask(PolyTable& t, PolyId p) {
  std::vector<PolyId> factors;
  for (const Term& term : std::vector<Term>(t[p].terms)) {
    if (term.coef > 1 || term.coef < -1) factors.push_back(t.constant(std::abs(term.coef)));
    for (AtomId id : std::vector<AtomId>(t.atoms_of(term.mono))) {
      if (t.atom(id).kind == AtomKind::symbol || t.atoms_of(term.mono).size() == 1) continue;
      auto parts = t.split(p, id);
      if (!parts) continue;
      PolyId g = t.ge0(parts->factor) ? parts->factor : t.scale(parts->factor, -1);
      if (t.ge0(t.add_constant(g, -1))) factors.push_back(g);
    }
  }
  for (PolyId g : factors)
    if (auto parts = t.closed_divmod(p, g); parts && parts->quotient != p) return parts->quotient;
  return p;
}

// (x div d) + k >= 0 is x + k*d >= 0, and k - (x div d) >= 0 is d*k + d - 1 - x >= 0. For divisions
// that no cut removed.
PolyId multiply_mask(PolyTable& t, PolyId p) {
  for (const Term& term : std::vector<Term>(t[p].terms)) {
    const std::vector<AtomId> atoms = t.atoms_of(term.mono);
    if (atoms.size() != 1 || std::abs(term.coef) != 1) continue;
    Atom atom = t.atom(atoms[0]);
    if (atom.kind != AtomKind::div) continue;
    auto parts = t.split(p, atoms[0]);
    if (!parts || t.contains(parts->rest, atoms[0])) continue;
    PolyId scaled = t.mul(parts->rest, atom.b);
    if (term.coef == 1) return t.add(atom.a, scaled);
    return t.sub(t.add_constant(t.add(scaled, atom.b), -1), atom.a);
  }
  return p;
}

// Axes that `mask` fixes to one value: ±v + k >= 0 narrows v.
PolyTable::AtomMap fixed_axes(PolyTable& t, const Mask& mask) {
  PolyTable::AtomMap lows, highs, fixed;
  for (PolyId p : mask) {
    for (const Term& term : std::vector<Term>(t[p].terms)) {
      const std::vector<AtomId> atoms = t.atoms_of(term.mono);
      if (atoms.size() != 1 || t.atom(atoms[0]).kind != AtomKind::axis) continue;
      if (term.coef != 1 && term.coef != -1) continue;
      auto parts = t.split(p, atoms[0]);
      if (!parts || !t.has_only_symbols(parts->rest)) continue;
      if (term.coef == 1) lows[atoms[0]] = t.scale(parts->rest, -1);
      if (term.coef == -1) highs[atoms[0]] = parts->rest;
    }
  }
  auto fix = [&](AtomId id) {
    auto low = lows.find(id), high = highs.find(id);
    PolyId lo = low == lows.end() ? 0 : low->second;
    PolyId hi = high == highs.end() ? t.add_constant(t.atom(id).b, -1) : high->second;
    if (lo == hi) fixed[id] = lo;
  };
  for (auto [id, lo] : lows) fix(id);
  for (auto [id, hi] : highs) fix(id);
  return fixed;
}

}  // namespace

void simplify_mask(PolyTable& t, Access& access) {
  Mask kept;
  for (PolyId p : access.mask) {
    for (PolyId next; (next = divide_mask(t, p)) != p;) p = next;
    if (t.ge0(p)) continue;
    access.never |= t.ge0(t.add_constant(t.scale(p, -1), -1));
    if (access.never) return;
    if (std::find(kept.begin(), kept.end(), p) == kept.end()) kept.push_back(p);
  }
  access.mask = std::move(kept);
}

void finish(PolyTable& t, Access& access) {
  for (PolyId& p : access.mask)
    if (PolyId linear = multiply_mask(t, p); count_divisions(t, linear) < count_divisions(t, p))
      p = linear;
  simplify_mask(t, access);
  if (access.never) return;
  PolyTable::AtomMap fixed = fixed_axes(t, access.mask);
  access.index = t.substitute(access.index, fixed);
  for (PolyId& p : access.mask) {
    PolyId replaced = t.substitute(p, fixed);
    if (!t.is_constant(replaced)) p = replaced;  // what fixes an axis must stay
  }
  simplify_mask(t, access);
}

int count_divisions(const PolyTable& t, PolyId p) {
  int count = 0;
  for (const Term& term : t[p].terms) {
    for (AtomId id : t.atoms_of(term.mono)) {
      const Atom& atom = t.atom(id);
      if (atom.kind != AtomKind::div && atom.kind != AtomKind::mod) continue;
      count += 1 + count_divisions(t, atom.a) + count_divisions(t, atom.b);
    }
  }
  return count;
}

}  // namespace tn::loop
