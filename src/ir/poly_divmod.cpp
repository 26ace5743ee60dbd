// Division with remainder: the rules that turn nested div and mod into digits.
//
// Tried in this order: long division; shifting the remainder into [0, d); negation; splitting the
// divisor d = g*d' where e = g*e' + s with 0 <= s < g; joining nested div and mod; atoms.
#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "ir/poly.h"

namespace tn {
namespace {

constexpr int kMaxSteps = 64;
constexpr size_t kMaxFactors = 16;
constexpr size_t kMaxMemo = size_t{1} << 18;

int64_t floor_quotient(int64_t a, int64_t b) {
  int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

}  // namespace

// Degree first, then lexicographic: an order that products respect, so long division ends.
int PolyTable::compare_grlex(MonoId a, MonoId b) const {
  if (a == b) return 0;
  size_t x = monos_[a].size(), y = monos_[b].size();
  if (x != y) return x < y ? -1 : 1;
  return -compare_monos(a, b);
}

size_t PolyTable::leading_term(const Poly& p) const {
  size_t best = 0;
  for (size_t i = 1; i < p.terms.size(); ++i)
    if (compare_grlex(p.terms[i].mono, p.terms[best].mono) > 0) best = i;
  return best;
}

// Coefficients are cut towards zero (-1 by 6 stays -1), so that reversed axes work.
DivMod PolyTable::long_division(PolyId e, PolyId d) {
  if (is_constant(d)) {
    int64_t k = constant_of(d);
    std::vector<Term> quotient, rest;
    for (const Term& t : polys_[e].terms) {
      if (t.coef / k != 0) quotient.push_back({t.coef / k, t.mono});
      if (t.coef % k != 0) rest.push_back({t.coef % k, t.mono});
    }
    int64_t c0 = polys_[e].c0;
    return {build(std::move(quotient), c0 / k), build(std::move(rest), c0 % k)};
  }
  Term lead = polys_[d].terms[leading_term(polys_[d])];
  PolyId quotient = 0, rest = e;
  for (int step = 0; step < kMaxSteps; ++step) {
    bool found = false;
    Term best{};
    MonoId ratio = 0;
    for (const Term& t : polys_[rest].terms) {
      if (t.coef / lead.coef == 0 || (found && compare_grlex(t.mono, best.mono) < 0)) continue;
      auto divided = div_mono(t.mono, lead.mono);
      if (!divided) continue;
      found = true;
      best = t;
      ratio = *divided;
    }
    if (!found) break;
    int64_t coef = best.coef / lead.coef;
    PolyId part = ratio == 0 ? constant(coef) : intern({{{coef, ratio}}, 0});
    quotient = add(quotient, part);
    rest = sub(rest, mul(part, d));
  }
  return {quotient, rest};
}

// Shifts the remainder by multiples of d into [0, d); false if that cannot be proved.
bool PolyTable::close(DivMod& result, PolyId d) {
  auto inside = [&](PolyId r) { return ge0(r) && lt(r, d); };
  if (is_constant(d)) {
    int64_t k = constant_of(d);
    auto shifted = [&](int64_t shift) {
      return DivMod{add_constant(result.quotient, shift),
                    add_constant(result.remainder, -shift * k)};
    };
    int64_t lo = range(result.remainder).lo;
    if (lo > INT64_MIN / 2 && lo < INT64_MAX / 2) {
      DivMod moved = shifted(floor_quotient(lo, k));
      if (inside(moved.remainder)) {
        result = moved;
        return true;
      }
    }
    // Open remainders have their constant in [0, k), so that equal ones are identical.
    result = shifted(floor_quotient(constant_of(result.remainder), k));
    return false;
  }
  if (inside(result.remainder)) return true;
  for (int64_t shift : {-1, 1}) {
    PolyId moved = sub(result.remainder, scale(d, shift));
    if (!inside(moved)) continue;
    result = {add_constant(result.quotient, shift), moved};
    return true;
  }
  return false;
}

std::optional<DivMod> PolyTable::closed_divmod(PolyId e, PolyId d) {
  if (d == 1) return DivMod{e, 0};
  DivMod result = long_division(e, d);
  if (!close(result, d)) return std::nullopt;
  return result;
}

std::optional<PolyId> PolyTable::exact_div(PolyId e, PolyId d) {
  if (d == 0) return std::nullopt;
  DivMod result = long_division(e, d);
  if (result.remainder != 0) return std::nullopt;
  return result.quotient;
}

PolyId PolyTable::monomial_gcd(PolyId a, PolyId b) {
  int64_t coef = 0;
  std::optional<std::vector<AtomId>> shared;
  auto meet = [&](int64_t c, const std::vector<AtomId>& atoms) {
    coef = std::gcd(coef, c);
    if (!shared) {
      shared = atoms;
      return;
    }
    std::vector<AtomId> left = atoms, kept;
    for (AtomId id : *shared) {
      auto it = std::find(left.begin(), left.end(), id);
      if (it == left.end()) continue;
      kept.push_back(id);
      left.erase(it);
    }
    shared = std::move(kept);
  };
  for (PolyId p : {a, b}) {
    for (const Term& t : polys_[p].terms) meet(t.coef, monos_[t.mono]);
    if (polys_[p].c0 != 0) meet(polys_[p].c0, monos_[0]);
  }
  if (!shared) return 0;
  if (shared->empty()) return constant(coef);
  return intern({{{coef, intern_mono(std::move(*shared))}}, 0});
}

// Divisors of d worth trying, largest first.
std::vector<PolyId> PolyTable::factor_candidates(PolyId r, PolyId d) {
  std::vector<PolyId> found;
  auto consider = [&](PolyId g) {
    if (g == 0 || g == 1 || g == d) return;
    if (std::find(found.begin(), found.end(), g) == found.end()) found.push_back(g);
  };
  for (const Term& t : std::vector<Term>(polys_[r].terms))
    consider(monomial_gcd(d, intern({{t}, 0})));
  PolyId content = monomial_gcd(d, 0);
  if (polys_[d].terms.size() + (polys_[d].c0 != 0) > 1) {
    if (content != 1)
      if (auto primitive = exact_div(d, content)) consider(*primitive);
    for (PolyId factor : factors_)
      if (factor != d && exact_div(d, factor)) consider(factor);
  }
  auto larger = [&](PolyId a, PolyId b) {
    int x = degree(a), y = degree(b);
    if (x != y) return x > y;
    int64_t s = is_constant(a) ? constant_of(a) : polys_[a].terms[0].coef;
    int64_t t = is_constant(b) ? constant_of(b) : polys_[b].terms[0].coef;
    return s != t ? s > t : compare(a, b) < 0;
  };
  std::sort(found.begin(), found.end(), larger);
  return found;
}

std::optional<DivMod> PolyTable::divide_by_factor(const DivMod& partial, PolyId d) {
  for (PolyId g : factor_candidates(partial.remainder, d)) {
    auto smaller = exact_div(d, g);
    if (!smaller) continue;
    auto outer = closed_divmod(partial.remainder, g);
    if (!outer) continue;
    DivMod inner = divmod(outer->quotient, *smaller);
    return DivMod{add(partial.quotient, inner.quotient),
                  add(mul(g, inner.remainder), outer->remainder)};
  }
  return std::nullopt;
}

// (x div a) div d = x div (a*d); (x mod d*k) div d = (x div d) mod k; (x mod d*k) mod d = x mod d.
std::optional<DivMod> PolyTable::divide_one_atom(PolyId r, PolyId d) {
  auto id = as_atom(r);
  if (!id) return std::nullopt;
  Atom atom = atoms_[*id];
  if (atom.kind == AtomKind::div) {
    PolyId quotient = div(atom.a, mul(atom.b, d));
    if (!as_atom(quotient)) return DivMod{quotient, sub(r, mul(quotient, d))};
    Atom rest{.kind = AtomKind::mod, .a = r, .b = d, .c = quotient, .range = {}};
    rest.range = {0, std::max<int64_t>(range(d).hi - 1, 0)};
    return DivMod{quotient, atom_poly(intern_atom(rest))};
  }
  if (atom.kind == AtomKind::mod) {
    auto k = exact_div(atom.b, d);
    if (!k) return std::nullopt;
    DivMod inner = divmod(atom.a, d);
    return DivMod{mod(inner.quotient, *k), inner.remainder};
  }
  return std::nullopt;
}

DivMod PolyTable::divide_residual(PolyId r, PolyId d) {
  Bounds of_r = range(r), of_d = range(d);
  int64_t d_lo = std::max<int64_t>(of_d.lo, 1), d_hi = std::max<int64_t>(of_d.hi, 1);
  auto quotient_of = [](int64_t x, int64_t small, int64_t large, bool up) {
    if (x == INT64_MAX || x == INT64_MIN) return x;
    return floor_quotient(x, (x >= 0) == up ? small : large);
  };
  Atom div{.kind = AtomKind::div, .a = r, .b = d, .range = {}};
  div.range = {quotient_of(of_r.lo, d_lo, d_hi, false), quotient_of(of_r.hi, d_lo, d_hi, true)};
  PolyId quotient = atom_poly(intern_atom(div));
  Atom mod{.kind = AtomKind::mod, .a = r, .b = d, .c = quotient, .range = {}};
  mod.range = {0, d_hi == INT64_MAX ? d_hi : d_hi - 1};
  if (of_r.lo >= 0) mod.range.hi = std::min(mod.range.hi, of_r.hi);
  return {quotient, atom_poly(intern_atom(mod))};
}

bool PolyTable::leads_negative(PolyId p) const {
  return !polys_[p].terms.empty() && polys_[p].terms[0].coef < 0;
}

DivMod PolyTable::divide(PolyId e, PolyId d) {
  DivMod partial = long_division(e, d);
  if (close(partial, d)) return partial;
  if (leads_negative(partial.remainder)) {
    // e div d = -((-e-1) div d) - 1, and the remainders are mirrored.
    DivMod mirror = divmod(add_constant(scale(partial.remainder, -1), -1), d);
    PolyId quotient = sub(partial.quotient, add_constant(mirror.quotient, 1));
    return {quotient, sub(add_constant(d, -1), mirror.remainder)};
  }
  if (auto result = divide_by_factor(partial, d)) return *result;
  if (auto result = divide_one_atom(partial.remainder, d)) {
    result->quotient = add(partial.quotient, result->quotient);
    return *result;
  }
  DivMod result = divide_residual(partial.remainder, d);
  return {add(partial.quotient, result.quotient), result.remainder};
}

DivMod PolyTable::divmod(PolyId e, PolyId d) {
  if (d == 1 || (is_constant(d) && constant_of(d) < 1)) return {e, 0};
  if (is_constant(e) && is_constant(d)) {
    int64_t x = constant_of(e), k = constant_of(d), q = floor_quotient(x, k);
    return {constant(q), constant(x - q * k)};
  }
  uint64_t key = uint64_t{e} << 32 | d;
  if (auto it = divmod_memo_.find(key); it != divmod_memo_.end()) return it->second;
  if (polys_[d].terms.size() + (polys_[d].c0 != 0) > 1 && factors_.size() < kMaxFactors &&
      std::find(factors_.begin(), factors_.end(), d) == factors_.end())
    factors_.push_back(d);
  DivMod result = divide(e, d);
  if (divmod_memo_.size() > kMaxMemo) divmod_memo_.clear();
  divmod_memo_[key] = result;
  return result;
}

}  // namespace tn
