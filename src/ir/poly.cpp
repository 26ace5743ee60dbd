#include "ir/poly.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"

namespace tn {
namespace {

int64_t checked_mul(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) [[unlikely]]
    fail("size: the product {} * {} does not fit in 64 bits", a, b);
  return r;
}

int64_t checked_add(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r)) [[unlikely]]
    fail("size: the sum {} + {} does not fit in 64 bits", a, b);
  return r;
}

constexpr uint32_t kLargestSize = 1u << 30;
// Each step of a sum or product makes a new polynomial: without limits n steps take n² memory.
constexpr size_t kMostFactors = 256, kMostTerms = 2048;

void check_terms(size_t count) {
  if (count > kMostTerms) [[unlikely]]
    fail("size: a sum of {} terms, the maximum is {}", count, kMostTerms);
}

template <class T, class Same>
uint32_t find_or_add(std::unordered_multimap<uint64_t, uint32_t>& index, StableList<T>& pool,
                     uint64_t hash, T& item, Same same) {
  auto [first, last] = index.equal_range(hash);
  for (auto it = first; it != last; ++it)
    if (same(pool[it->second])) return it->second;
  uint32_t id = static_cast<uint32_t>(pool.size());
  auto added = index.emplace(hash, id);
  try {
    pool.push_back(std::move(item));
  } catch (...) {
    index.erase(added);  // out of memory: what is equal must stay one item
    throw;
  }
  return id;
}

}  // namespace

PolyTable::PolyTable() {
  monos_.push_back({});  // the unit monomial, used in products only
  constant(0);           // id 0
  constant(1);           // id 1
}

PolyId PolyTable::intern(Poly poly) {
  uint64_t hash = mix(static_cast<uint64_t>(poly.c0));
  for (const Term& t : poly.terms) {
    hash = combine(hash, t.mono);
    hash = combine(hash, static_cast<uint64_t>(t.coef));
  }
  auto same = [&](const Poly& other) { return other == poly; };
  return find_or_add(poly_index_, polys_, hash, poly, same);
}

MonoId PolyTable::intern_mono(std::vector<AtomId> atoms) {
  uint64_t hash = 0;
  for (AtomId a : atoms) hash = combine(hash, a);
  if (atoms.empty()) return 0;
  auto same = [&](const std::vector<AtomId>& other) { return other == atoms; };
  return find_or_add(mono_index_, monos_, hash, atoms, same);
}

uint32_t PolyTable::size(PolyId p) const {
  uint64_t sum = 0;
  for (const Term& t : polys_[p].terms)
    for (AtomId id : monos_[t.mono]) sum += atoms_[id].size;
  return static_cast<uint32_t>(std::min<uint64_t>(sum, kLargestSize));
}

AtomId PolyTable::intern_atom(Atom atom) {
  if (!is_leaf(atom.kind)) atom.size = std::min(1 + size(atom.a) + size(atom.b), kLargestSize);
  uint64_t hash = combine(combine(static_cast<uint64_t>(atom.kind), atom.a), atom.b);
  // The quotient of a Mod follows from its operands.
  bool by_range = atom.kind == AtomKind::symbol || atom.kind == AtomKind::value;
  auto same = [&](const Atom& other) {
    return other.kind == atom.kind && other.a == atom.a && other.b == atom.b &&
           (!by_range || (other.range.lo == atom.range.lo && other.range.hi == atom.range.hi));
  };
  return find_or_add(atom_index_, atoms_, hash, atom, same);
}

PolyId PolyTable::constant(int64_t value) { return intern({{}, value}); }

PolyId PolyTable::atom_poly(AtomId id) { return intern({{{1, intern_mono({id})}}, 0}); }

PolyId PolyTable::symbol(std::string_view name, int64_t lo, int64_t hi) {
  if (lo == hi) return constant(lo);
  uint32_t number = 0;
  while (number < names_.size() && names_[number] != name) ++number;
  if (number == names_.size()) names_.push_back(std::string(name));
  return atom_poly(intern_atom({.kind = AtomKind::symbol, .a = number, .range = Bounds{lo, hi}}));
}

PolyId PolyTable::axis(uint32_t slot, PolyId extent) {
  if (extent == 1) return 0;
  int64_t hi = range(extent).hi;
  Bounds range{0, hi == INT64_MAX ? hi : hi - 1};
  return atom_poly(intern_atom({.kind = AtomKind::axis, .a = slot, .b = extent, .range = range}));
}

PolyId PolyTable::value(uint32_t number, int64_t lo, int64_t hi) {
  return atom_poly(intern_atom({.kind = AtomKind::value, .a = number, .range = Bounds{lo, hi}}));
}

PolyId PolyTable::build(std::vector<Term> terms, int64_t c0) {
  std::sort(terms.begin(), terms.end(), [&](const Term& a, const Term& b) {
    return a.mono != b.mono && compare_monos(a.mono, b.mono) < 0;
  });
  size_t kept = 0;
  for (size_t i = 0; i < terms.size();) {
    Term sum = terms[i++];
    for (; i < terms.size() && terms[i].mono == sum.mono; ++i)
      sum.coef = checked_add(sum.coef, terms[i].coef);
    if (sum.coef != 0) terms[kept++] = sum;
  }
  terms.resize(kept);
  return join_digits(intern({std::move(terms), c0}));
}

// c*d*(x div d) + c*(x mod d) = c*x, if the div term is there with exactly that coefficient.
PolyId PolyTable::join_digits(PolyId p) {
  for (size_t t = 0; t < polys_[p].terms.size(); ++t) {
    for (AtomId id : std::vector<AtomId>(monos_[polys_[p].terms[t].mono])) {
      const Atom& atom = atoms_[id];
      if (atom.kind != AtomKind::mod) continue;
      auto quotient = as_atom(atom.c);
      if (!quotient || !contains(p, *quotient)) continue;
      auto by_mod = split(p, id);
      if (!by_mod) continue;
      auto by_div = split(by_mod->rest, *quotient);
      if (!by_div || by_div->factor != mul(by_mod->factor, atom.b)) continue;
      return add(by_div->rest, mul(by_mod->factor, atom.a));
    }
  }
  return p;
}

PolyId PolyTable::add(PolyId a, PolyId b) {
  if (a == 0) return b;
  if (b == 0) return a;
  std::vector<Term> terms = polys_[a].terms;
  check_terms(terms.size() + polys_[b].terms.size());
  terms.insert(terms.end(), polys_[b].terms.begin(), polys_[b].terms.end());
  return build(std::move(terms), checked_add(polys_[a].c0, polys_[b].c0));
}

PolyId PolyTable::sub(PolyId a, PolyId b) { return a == b ? 0 : add(a, scale(b, -1)); }

PolyId PolyTable::scale(PolyId a, int64_t factor) {
  if (factor == 0) return 0;
  if (factor == 1) return a;
  Poly result = polys_[a];
  for (Term& t : result.terms) t.coef = checked_mul(t.coef, factor);
  result.c0 = checked_mul(result.c0, factor);
  return intern(std::move(result));
}

PolyId PolyTable::add_constant(PolyId a, int64_t value) {
  Poly result = polys_[a];
  result.c0 = checked_add(result.c0, value);
  return intern(std::move(result));
}

MonoId PolyTable::mul_mono(MonoId a, MonoId b) {
  if (a == 0) return b;
  if (b == 0) return a;
  std::vector<AtomId> atoms = monos_[a];
  if (size_t count = atoms.size() + monos_[b].size(); count > kMostFactors) [[unlikely]]
    fail("size: a product of {} factors, the maximum is {}", count, kMostFactors);
  atoms.insert(atoms.end(), monos_[b].begin(), monos_[b].end());
  std::sort(atoms.begin(), atoms.end(),
            [&](AtomId x, AtomId y) { return x != y && compare_atoms(x, y) < 0; });
  return intern_mono(std::move(atoms));
}

std::optional<MonoId> PolyTable::div_mono(MonoId a, MonoId b) {
  std::vector<AtomId> rest = monos_[a];
  for (AtomId atom : monos_[b]) {
    auto it = std::find(rest.begin(), rest.end(), atom);
    if (it == rest.end()) return std::nullopt;
    rest.erase(it);
  }
  return intern_mono(std::move(rest));
}

PolyId PolyTable::mul(PolyId a, PolyId b) {
  if (is_constant(a)) return scale(b, constant_of(a));
  if (is_constant(b)) return scale(a, constant_of(b));
  std::vector<Term> terms;
  const Poly &x = polys_[a], &y = polys_[b];
  check_terms((x.terms.size() + 1) * (y.terms.size() + 1) - 1);
  for (const Term& s : x.terms) {
    for (const Term& t : y.terms)
      terms.push_back({checked_mul(s.coef, t.coef), mul_mono(s.mono, t.mono)});
    if (y.c0 != 0) terms.push_back({checked_mul(s.coef, y.c0), s.mono});
  }
  if (x.c0 != 0)
    for (const Term& t : y.terms) terms.push_back({checked_mul(x.c0, t.coef), t.mono});
  return build(std::move(terms), checked_mul(x.c0, y.c0));
}

PolyId PolyTable::choose(AtomKind kind, PolyId a, PolyId b) {
  bool is_min = kind == AtomKind::min;
  if (ge0(sub(b, a))) return is_min ? a : b;
  if (ge0(sub(a, b))) return is_min ? b : a;
  if (compare(a, b) > 0) std::swap(a, b);
  Bounds x = range(a), y = range(b);
  Bounds range = is_min ? Bounds{std::min(x.lo, y.lo), std::min(x.hi, y.hi)}
                        : Bounds{std::max(x.lo, y.lo), std::max(x.hi, y.hi)};
  return atom_poly(intern_atom({.kind = kind, .a = a, .b = b, .range = range}));
}

PolyId PolyTable::min(PolyId a, PolyId b) { return choose(AtomKind::min, a, b); }
PolyId PolyTable::max(PolyId a, PolyId b) { return choose(AtomKind::max, a, b); }

std::optional<Split> PolyTable::split(PolyId p, AtomId atom) {
  std::vector<Term> factor, rest;
  int64_t factor_c0 = 0;
  for (const Term& t : polys_[p].terms) {
    const std::vector<AtomId>& atoms = monos_[t.mono];
    auto count = std::count(atoms.begin(), atoms.end(), atom);
    if (count > 1) return std::nullopt;
    if (count == 0) {
      rest.push_back(t);
    } else if (atoms.size() == 1) {
      factor_c0 = t.coef;
    } else {
      std::vector<AtomId> others = atoms;
      others.erase(std::find(others.begin(), others.end(), atom));
      factor.push_back({t.coef, intern_mono(std::move(others))});
    }
  }
  // Removing one atom from every term may change their order.
  std::sort(factor.begin(), factor.end(), [&](const Term& a, const Term& b) {
    return a.mono != b.mono && compare_monos(a.mono, b.mono) < 0;
  });
  int64_t c0 = polys_[p].c0;
  return Split{intern({std::move(factor), factor_c0}), intern({std::move(rest), c0})};
}

std::optional<AtomId> PolyTable::as_atom(PolyId p) const {
  if (p == kNoPoly || !is_one_term(p) || polys_[p].terms[0].coef != 1) return std::nullopt;
  const std::vector<AtomId>& atoms = monos_[polys_[p].terms[0].mono];
  if (atoms.size() != 1) return std::nullopt;
  return atoms[0];
}

bool PolyTable::contains(PolyId p, AtomId wanted) const {
  for (const Term& t : polys_[p].terms) {
    for (AtomId id : monos_[t.mono]) {
      if (id == wanted) return true;
      const Atom& atom = atoms_[id];
      // An atom refers to older ones only.
      if (is_leaf(atom.kind) || id < wanted) continue;
      if (contains(atom.a, wanted) || contains(atom.b, wanted)) return true;
    }
  }
  return false;
}

int PolyTable::degree(PolyId p) const {
  size_t degree = 0;
  for (const Term& t : polys_[p].terms) degree = std::max(degree, monos_[t.mono].size());
  return static_cast<int>(degree);
}

int PolyTable::compare_atoms(AtomId a, AtomId b) const {
  if (a == b) return 0;
  const Atom &x = atoms_[a], &y = atoms_[b];
  if (x.kind != y.kind) return x.kind < y.kind ? -1 : 1;
  auto order = [](int64_t s, int64_t t) { return s < t ? -1 : s > t ? 1 : 0; };
  switch (x.kind) {
    case AtomKind::symbol: {
      int by_name = names_[x.a].compare(names_[y.a]);
      if (by_name != 0) return by_name;
      int by_lo = order(x.range.lo, y.range.lo);
      return by_lo != 0 ? by_lo : order(x.range.hi, y.range.hi);
    }
    case AtomKind::value: {
      if (x.a != y.a) return order(x.a, y.a);
      int by_lo = order(x.range.lo, y.range.lo);
      return by_lo != 0 ? by_lo : order(x.range.hi, y.range.hi);
    }
    case AtomKind::axis:
      return x.a != y.a ? order(x.a, y.a) : compare(x.b, y.b);
    default: {
      int by_first = compare(x.a, y.a);
      return by_first != 0 ? by_first : compare(x.b, y.b);
    }
  }
}

int PolyTable::compare_monos(MonoId a, MonoId b) const {
  if (a == b) return 0;
  const std::vector<AtomId>&x = monos_[a], &y = monos_[b];
  for (size_t i = 0; i < x.size() && i < y.size(); ++i) {
    int order = compare_atoms(x[i], y[i]);
    if (order != 0) return order;
  }
  return x.size() < y.size() ? -1 : 1;
}

int PolyTable::compare(PolyId a, PolyId b) const {
  if (a == b) return 0;
  const Poly &x = polys_[a], &y = polys_[b];
  for (size_t i = 0; i < x.terms.size() && i < y.terms.size(); ++i) {
    int order = compare_monos(x.terms[i].mono, y.terms[i].mono);
    if (order != 0) return order;
    if (x.terms[i].coef != y.terms[i].coef) return x.terms[i].coef < y.terms[i].coef ? -1 : 1;
  }
  if (x.terms.size() != y.terms.size()) return x.terms.size() > y.terms.size() ? -1 : 1;
  return x.c0 < y.c0 ? -1 : 1;
}

}  // namespace tn
