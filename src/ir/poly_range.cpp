// Ranges of polynomials and the sign proof.
//
// Plain intervals cannot prove b*S + s < B*S. So `bound` first eliminates everything that is not a
// symbol, newest atom first: p = A*x + B is replaced by A*(bound of x) + B once the sign of A is
// known. What remains has symbols only and is shifted by their lower bounds.
#include <algorithm>
#include <map>

#include "base/error.h"
#include "ir/poly.h"

namespace tn {
namespace {

constexpr int kMaxDepth = 6;
constexpr size_t kMaxExpandedDegree = 8;
constexpr size_t kMaxRanges = size_t{1} << 18;

using Wide = __int128;

int64_t saturate(Wide x) {
  if (x > INT64_MAX) return INT64_MAX;
  if (x < INT64_MIN) return INT64_MIN;
  return static_cast<int64_t>(x);
}

bool infinite(int64_t x) { return x == INT64_MAX || x == INT64_MIN; }

int64_t add_saturated(int64_t a, int64_t b) {
  if (infinite(a)) return a;
  return infinite(b) ? b : saturate(Wide{a} + b);
}

Bounds multiply(Bounds a, Bounds b) {
  Wide corner[] = {Wide{a.lo} * b.lo, Wide{a.lo} * b.hi, Wide{a.hi} * b.lo, Wide{a.hi} * b.hi};
  auto [lo, hi] = std::minmax_element(std::begin(corner), std::end(corner));
  return {saturate(*lo), saturate(*hi)};
}

}  // namespace

Bounds PolyTable::range(PolyId p) const {
  const Poly& poly = polys_[p];
  Bounds sum{poly.c0, poly.c0};
  for (const Term& t : poly.terms) {
    Bounds product{t.coef, t.coef};
    for (AtomId id : monos_[t.mono]) product = multiply(product, atoms_[id].range);
    sum = {add_saturated(sum.lo, product.lo), add_saturated(sum.hi, product.hi)};
  }
  return sum;
}

PolyId PolyTable::atom_bound(AtomId id, bool upper) {
  PolyId known = upper ? atoms_[id].hi : atoms_[id].lo;
  if (known != kNoPoly) return known;
  PolyId found = compute_atom_bound(Atom(atoms_[id]), upper);
  int64_t number = upper ? atoms_[id].range.hi : atoms_[id].range.lo;
  if (found == kNoPoly && !infinite(number)) found = constant(number);
  if (!capped_) (upper ? atoms_[id].hi : atoms_[id].lo) = found;
  return found;
}

// Must not create atoms, or it would recurse without end: hence closed_divmod.
PolyId PolyTable::compute_atom_bound(const Atom& atom, bool upper) {
  auto bound_of = [&](PolyId p) { return bound(p, upper).value_or(kNoPoly); };
  switch (atom.kind) {
    case AtomKind::axis:
    case AtomKind::mod:
      return upper ? bound_of(add_constant(atom.b, -1)) : 0;
    case AtomKind::div: {
      PolyId of_operand = bound_of(atom.a);
      if (of_operand == kNoPoly) return kNoPoly;
      if (auto result = closed_divmod(of_operand, atom.b)) return bound_of(result->quotient);
      return !upper && ge0(of_operand) ? 0 : kNoPoly;
    }
    case AtomKind::min:
    case AtomKind::max: {
      PolyId x = bound_of(atom.a), y = bound_of(atom.b);
      if (x == kNoPoly || y == kNoPoly) {
        bool either = upper == (atom.kind == AtomKind::min);
        return !either ? kNoPoly : x == kNoPoly ? y : x;
      }
      bool y_larger = ge0(sub(y, x)), x_larger = ge0(sub(x, y));
      bool want_small = atom.kind == AtomKind::min;
      if (y_larger) return want_small ? x : y;
      if (x_larger) return want_small ? y : x;
      // Either operand bounds a minimum from above, and a maximum from below.
      return upper == want_small ? x : kNoPoly;
    }
    case AtomKind::value:
    case AtomKind::symbol:
      break;
  }
  return kNoPoly;
}

std::optional<PolyId> PolyTable::bound(PolyId p, bool upper) {
  AtomId newest = 0;
  bool found = false;
  for (const Term& t : polys_[p].terms) {
    for (AtomId id : monos_[t.mono]) {
      if (atoms_[id].kind == AtomKind::symbol) continue;
      newest = found ? std::max(newest, id) : id;
      found = true;
    }
  }
  if (!found) return p;
  uint64_t key = uint64_t{p} * 2 + upper;
  if (auto it = bound_memo_.find(key); it != bound_memo_.end())
    return it->second == kNoPoly ? std::nullopt : std::optional(it->second);
  auto compute = [&]() -> std::optional<PolyId> {
    auto parts = split(p, newest);
    if (!parts) return std::nullopt;
    bool positive = ge0(parts->factor);
    if (!positive && !ge0(scale(parts->factor, -1))) return std::nullopt;
    PolyId limit = atom_bound(newest, upper == positive);
    if (limit == kNoPoly) return std::nullopt;
    return bound(add(mul(parts->factor, limit), parts->rest), upper);
  };
  auto result = compute();
  if (bound_memo_.size() > kMaxRanges) bound_memo_.clear();
  if (result || !capped_) bound_memo_[key] = result.value_or(kNoPoly);
  return result;
}

// With every symbol s written as lo + s', s' >= 0, no coefficient may be negative.
bool PolyTable::symbols_ge0(PolyId p) const {
  const Poly& poly = polys_[p];
  std::map<std::vector<AtomId>, Wide> sum;
  Wide c0 = poly.c0;
  for (const Term& t : poly.terms) {
    const std::vector<AtomId>& atoms = monos_[t.mono];
    if (atoms.size() > kMaxExpandedDegree) return false;
    for (uint32_t kept = 0; kept < (1u << atoms.size()); ++kept) {
      Wide coef = t.coef;
      std::vector<AtomId> rest;
      for (size_t i = 0; i < atoms.size(); ++i) {
        if (kept >> i & 1) {
          rest.push_back(atoms[i]);
        } else {
          int64_t lo = atoms_[atoms[i]].range.lo;
          if (lo < 0 || lo > INT32_MAX || coef > INT64_MAX || coef < INT64_MIN) return false;
          coef *= lo;
        }
      }
      if (rest.empty()) {
        c0 += coef;
      } else if (coef != 0) {
        sum[std::move(rest)] += coef;
      }
    }
  }
  if (c0 < 0) return false;
  return std::all_of(sum.begin(), sum.end(), [](const auto& term) { return term.second >= 0; });
}

bool PolyTable::prove_ge0(PolyId p) {
  auto low = bound(p, false);
  if (low && symbols_ge0(*low)) return true;
  if (low && range(*low).lo >= 0) return true;
  return range(p).lo >= 0;
}

bool PolyTable::ge0(PolyId p) {
  if (is_constant(p)) return constant_of(p) >= 0;
  if (auto it = ge0_memo_.find(p); it != ge0_memo_.end()) return it->second;
  if (depth_ >= kMaxDepth) {
    capped_ = true;
    return range(p).lo >= 0;
  }
  if (ge0_memo_.size() > kMaxRanges) ge0_memo_.clear();
  ge0_memo_[p] = false;  // cuts cycles
  ++depth_;
  bool outer_capped = std::exchange(capped_, false);
  bool proved = false;
  try {
    proved = prove_ge0(p);
  } catch (const UserError&) {
    capped_ = true;  // a bound does not fit in 64 bits: no proof
  } catch (...) {    // out of memory: no answer
    --depth_, capped_ = outer_capped;
    ge0_memo_.erase(p);
    throw;
  }
  --depth_;
  if (proved || !capped_) {
    ge0_memo_[p] = proved;
  } else {
    ge0_memo_.erase(p);
  }
  // The caller has not been answered in full either.
  capped_ = depth_ > 0 && (capped_ || outer_capped);
  return proved;
}

}  // namespace tn
