#include "loop/refine.h"

#include <algorithm>

#include "base/error.h"

namespace tn::loop {
namespace {

/// A loop axis under refinement: its atom, and where it stands in the root.
struct Digit {
  AtomId atom;
  PolyId extent, weight;
};

bool is_division(const Atom& atom) {
  return atom.kind == AtomKind::div || atom.kind == AtomKind::mod;
}

// Collects Div and Mod atoms whose operands have none, in canonical order, each once.
void innermost_divisions(const PolyTable& t, PolyId p, std::vector<AtomId>& found) {
  for (const Term& term : t[p].terms) {
    for (AtomId id : t.atoms_of(term.mono)) {
      const Atom& atom = t.atom(id);
      if (is_leaf(atom.kind)) continue;
      if (is_division(atom) && count_divisions(t, atom.a) == 0) {
        if (std::find(found.begin(), found.end(), id) == found.end()) found.push_back(id);
      } else {
        innermost_divisions(t, atom.a, found);
        innermost_divisions(t, atom.b, found);
      }
    }
  }
}

bool larger(const PolyTable& t, PolyId a, PolyId b) {
  if (t.degree(a) != t.degree(b)) return t.degree(a) > t.degree(b);
  auto size = [&](PolyId p) {
    return t.is_constant(p) ? t.constant_of(p) : std::abs(t[p].terms[0].coef);
  };
  return size(a) > size(b);
}

template <class F>
void for_each_poly(std::vector<Access>& accesses, F f) {
  for (Access& access : accesses) {
    if (access.never) continue;
    f(access.index);
    for (PolyId& p : access.mask) f(p);
  }
}

class Refiner {
 public:
  Refiner(PolyTable& t, std::span<const PolyId> roots, std::vector<Access> accesses)
      : t_(t), accesses_(std::move(accesses)) {
    for (PolyId root : roots) {
      auto id = t.as_atom(root);
      digits_.emplace_back();
      if (id) digits_.back().push_back({*id, t.atom(*id).b, 1});
    }
  }

  Refinement run() {
    simplify();
    Refinement result;
    for (int round = 0; sizes_kept() && round < kMaxRounds && cut_once(); ++round) simplify();
    result.within_caps = sizes_kept();
    number_axes(result);
    result.accesses = std::move(accesses_);
    for (Access& access : result.accesses)
      if (!access.never) finish(t_, access);
    for_each_poly(result.accesses, [&](PolyId p) { result.residual += count_divisions(t_, p); });
    if (result.axes.size() > kMaxLoopAxes) result.within_caps = false;
    return result;
  }

 private:
  void simplify() {
    for (Access& access : accesses_)
      if (!access.never) simplify_mask(t_, access);
  }

  bool sizes_kept() {
    bool kept = true;
    for_each_poly(accesses_, [&](PolyId p) {
      kept &= t_[p].terms.size() <= kMaxTerms && t_.degree(p) <= kMaxDegree &&
              t_.size(p) <= kMaxIndexSize;
    });
    return kept;
  }

  // The first access goes first; within it the largest divisor, for what lies below its cut often
  // closes by itself.
  bool cut_once() {
    for (const Access& access : accesses_) {
      if (access.never) continue;
      std::vector<AtomId> divisions;
      innermost_divisions(t_, access.index, divisions);
      for (PolyId p : access.mask) innermost_divisions(t_, p, divisions);
      std::stable_sort(divisions.begin(), divisions.end(),
                       [&](AtomId a, AtomId b) { return larger(t_, t_.atom(a).b, t_.atom(b).b); });
      for (AtomId id : divisions) {
        Atom division = t_.atom(id);
        for (auto& root : digits_)
          for (size_t k = 0; k < root.size(); ++k)
            if (cut(root, k, division.a, division.b)) return true;
      }
    }
    return false;
  }

  // With x = c*v + ..., the digit boundary of x div d lies at d / gcd(c, d) in v.
  bool cut(std::vector<Digit>& root, size_t k, PolyId x, PolyId d) {
    Digit v = root[k];
    auto parts = t_.split(x, v.atom);
    if (!parts || t_.contains(parts->rest, v.atom) || root.size() >= kMaxDigits) return false;
    PolyId c = parts->factor;
    if (t_[c].terms.size() + (t_.constant_of(c) != 0) != 1) return false;
    auto inner = t_.exact_div(d, t_.monomial_gcd(c, d));
    if (!inner || *inner == 1 || *inner == v.extent) return false;
    auto outer = t_.exact_div(v.extent, *inner);
    if (!outer || *outer == 1) return false;
    PolyId high = root_axis(t_, *outer), low = root_axis(t_, *inner);
    PolyTable::AtomMap map{{v.atom, t_.add(t_.mul(*inner, high), low)}};
    for_each_poly(accesses_, [&](PolyId& p) { p = t_.substitute(p, map); });
    root[k] = {*t_.as_atom(high), *outer, t_.mul(v.weight, *inner)};
    root.insert(root.begin() + static_cast<ptrdiff_t>(k) + 1, {*t_.as_atom(low), *inner, v.weight});
    return true;
  }

  void number_axes(Refinement& result) {
    PolyTable::AtomMap map;
    for (size_t r = 0; r < digits_.size(); ++r) {
      for (const Digit& digit : digits_[r]) {
        map[digit.atom] = t_.axis(static_cast<uint32_t>(result.axes.size()), digit.extent);
        result.axes.push_back({static_cast<uint32_t>(r), digit.extent, digit.weight});
      }
    }
    for_each_poly(accesses_, [&](PolyId& p) { p = t_.substitute(p, map); });
  }

  PolyTable& t_;
  std::vector<Access> accesses_;
  std::vector<std::vector<Digit>> digits_;  // by root, outer to inner
};

// Whether p depends on the axes only through coef*(extent(inner)*outer + inner).
bool joins(PolyTable& t, PolyId p, AtomId outer, AtomId inner, PolyId extent) {
  auto by_outer = t.split(p, outer);
  if (!by_outer) return false;
  auto by_inner = t.split(by_outer->rest, inner);
  if (!by_inner || by_outer->factor != t.mul(by_inner->factor, extent)) return false;
  for (PolyId part : {by_outer->factor, by_inner->factor, by_inner->rest})
    if (t.contains(part, outer) || t.contains(part, inner)) return false;
  return true;
}

}  // namespace

PolyId root_axis(PolyTable& t, PolyId extent) { return t.axis(t.fresh_slot(), extent); }

Refinement refine(PolyTable& t, std::span<const PolyId> roots, std::vector<Access> accesses) {
  return Refiner(t, roots, std::move(accesses)).run();
}

void coalesce(PolyTable& t, Refinement& r) {
  for (size_t k = r.axes.size(); k-- > 1;) {
    LoopAxis &outer = r.axes[k - 1], inner = r.axes[k];
    if (outer.root != inner.root) continue;
    AtomId i = *t.as_atom(t.axis(static_cast<uint32_t>(k - 1), outer.extent));
    AtomId j = *t.as_atom(t.axis(static_cast<uint32_t>(k), inner.extent));
    bool all = true;
    for_each_poly(r.accesses, [&](PolyId p) { all = all && joins(t, p, i, j, inner.extent); });
    if (!all) continue;
    // The axes after k move up by one slot.
    PolyId extent = t.mul(outer.extent, inner.extent);
    PolyTable::AtomMap map{{i, 0}, {j, t.axis(static_cast<uint32_t>(k - 1), extent)}};
    for (size_t after = k + 1; after < r.axes.size(); ++after) {
      auto slot = static_cast<uint32_t>(after);
      map[*t.as_atom(t.axis(slot, r.axes[after].extent))] = t.axis(slot - 1, r.axes[after].extent);
    }
    for_each_poly(r.accesses, [&](PolyId& p) { p = t.substitute(p, map); });
    outer = {outer.root, extent, inner.weight};
    r.axes.erase(r.axes.begin() + static_cast<ptrdiff_t>(k));
  }
}

}  // namespace tn::loop
