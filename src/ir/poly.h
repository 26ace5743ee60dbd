#pragma once
// Integer polynomials over symbols, loop axes and div/mod atoms, hash-consed: the index algebra.
//
// A Poly is sum(coef * monomial) + c0, a monomial a sorted multiset of atoms. Equal polynomials
// have equal ids within one table; ids die with the table. A table is not thread-safe.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/stable_list.h"
#include "ir/dim.h"
#include "tenon/callback.h"

namespace tn {
using PolyId = uint32_t;
using AtomId = uint32_t;
using MonoId = uint32_t;

inline constexpr PolyId kNoPoly = ~PolyId{0};
/// In printing order.
enum class AtomKind : uint8_t { axis, value, mod, div, min, max, symbol };

/// Whether it has no operands.
constexpr bool is_leaf(AtomKind kind) {
  return kind == AtomKind::axis || kind == AtomKind::value || kind == AtomKind::symbol;
}

struct Atom {
  AtomKind kind;
  uint32_t a = 0;      // axis: slot; value: number; symbol: name; else the first operand
  PolyId b = 0;        // axis: extent; div, mod: divisor; min, max: second operand
  PolyId c = 0;        // mod: the quotient that goes with it
  Bounds range{0, 0};  // holds every value, saturated
  PolyId lo = kNoPoly, hi = kNoPoly;  // bounds as polynomials in the symbols, if known
  uint32_t size = 1;                  // atoms in its text, saturated
};

struct Term {
  int64_t coef;
  MonoId mono;
  friend bool operator==(const Term&, const Term&) = default;
};

struct Poly {
  std::vector<Term> terms;  // sorted by monomial, no zero coefficients
  int64_t c0 = 0;
  friend bool operator==(const Poly&, const Poly&) = default;
};

struct DivMod {
  PolyId quotient, remainder;
};

/// p = factor * atom + rest, when no higher power of the atom occurs.
struct Split {
  PolyId factor, rest;
};

/// A symbol as it is known to every table, and its value.
struct SymbolValue {
  std::string_view name;
  Bounds range;
  int64_t value;
};

/// Where the atoms of a polynomial take their values from.
struct PointValues {
  std::span<const int64_t> axes;    // by slot
  std::span<const int64_t> values;  // by number
  std::span<const SymbolValue> symbols;
};

class PolyTable {
 public:
  PolyTable();
  // Leaves.
  PolyId constant(int64_t value);
  PolyId symbol(std::string_view name, int64_t lo, int64_t hi);
  /// A loop axis with values 0 .. extent-1. Its identity is (slot, extent).
  PolyId axis(uint32_t slot, PolyId extent);
  /// A loaded index, promised to be in [lo, hi].
  PolyId value(uint32_t number, int64_t lo, int64_t hi);

  // Arithmetic. An overflow of a coefficient is an error of the caller.
  PolyId add(PolyId a, PolyId b);
  PolyId sub(PolyId a, PolyId b);
  PolyId mul(PolyId a, PolyId b);
  PolyId scale(PolyId a, int64_t factor);
  PolyId add_constant(PolyId a, int64_t value);
  PolyId min(PolyId a, PolyId b);
  PolyId max(PolyId a, PolyId b);
  /// e = d*quotient + remainder with 0 <= remainder < d. Requires d >= 1.
  DivMod divmod(PolyId e, PolyId d);
  PolyId div(PolyId e, PolyId d) { return divmod(e, d).quotient; }
  PolyId mod(PolyId e, PolyId d) { return divmod(e, d).remainder; }
  /// The quotient when the division leaves nothing as polynomials.
  std::optional<PolyId> exact_div(PolyId e, PolyId d);
  /// Answers only without new atoms.
  std::optional<DivMod> closed_divmod(PolyId e, PolyId d);
  /// The largest common monomial with its coefficient, of all terms of both.
  PolyId monomial_gcd(PolyId a, PolyId b);

  // Questions. ge0 is true if proved.
  bool ge0(PolyId p);
  bool lt(PolyId a, PolyId b) { return ge0(add_constant(sub(b, a), -1)); }
  Bounds range(PolyId p) const;
  /// A bound of p as a polynomial in the symbols.
  std::optional<PolyId> bound(PolyId p, bool upper);
  bool is_constant(PolyId p) const { return polys_[p].terms.empty(); }
  int64_t constant_of(PolyId p) const { return polys_[p].c0; }
  std::optional<Split> split(PolyId p, AtomId atom);
  /// The atom when p is exactly one atom.
  std::optional<AtomId> as_atom(PolyId p) const;
  bool is_one_term(PolyId p) const { return polys_[p].terms.size() == 1 && polys_[p].c0 == 0; }
  /// Whether `atom` occurs in p, at any depth.
  bool contains(PolyId p, AtomId atom) const;
  int degree(PolyId p) const;
  uint32_t size(PolyId p) const;  // atoms in its text, saturated

  // Rewriting.
  using AtomMap = std::unordered_map<AtomId, PolyId>;
  PolyId substitute(PolyId p, const AtomMap& map);
  /// p with symbols replaced by constants, in the extents of axes too.
  PolyId bind(PolyId p, std::span<const Binding> bindings);
  int64_t evaluate(PolyId p, const PointValues& at) const;

  // Exchange with other tables, by copying.
  PolyId from_dim(Dim dim);
  PolyId copy_from(const PolyTable& other, PolyId p);
  /// The size, when p has symbols only.
  std::optional<Dim> to_dim(PolyId p) const;
  // Text: `48*S*p0 + ((p1 + 2)%4) - 1`, or `48*S*B+1` when compact.
  struct TextStyle {
    std::span<const std::string> axis_names = {};  // by slot; others print as a0, a1, ...
    bool compact = false;
  };
  std::string text(PolyId p, const TextStyle& style) const;
  /// The inverse of `text`; `name` says what an identifier means.
  PolyId parse(std::string_view text, const Callback<PolyId(std::string_view)>& name);

  bool has_only_symbols(PolyId p) const;
  bool has_values(PolyId p) const;
  const Poly& operator[](PolyId p) const { return polys_[p]; }
  const Atom& atom(AtomId id) const { return atoms_[id]; }
  const std::vector<AtomId>& atoms_of(MonoId mono) const { return monos_[mono]; }
  /// Every atom of p, and those in its operands.
  template <class F>
  void for_each_atom(PolyId p, F&& f) const {
    for (const Term& term : polys_[p].terms) for_each_atom(term, f);
  }
  template <class F>
  void for_each_atom(const Term& term, F&& f) const {
    for (AtomId id : monos_[term.mono]) {
      const Atom& atom = atoms_[id];
      f(atom);
      if (is_leaf(atom.kind)) continue;
      for_each_atom(atom.a, f);
      for_each_atom(atom.b, f);
    }
  }
  std::string_view name_of(const Atom& symbol) const { return names_[symbol.a]; }
  PolyId atom_poly(AtomId id);
  /// Three-way comparison in canonical order, independent of the order of creation.
  int compare(PolyId a, PolyId b) const;
  int compare_atoms(AtomId a, AtomId b) const;
  uint32_t fresh_slot() { return next_slot_++; }

 private:
  PolyId intern(Poly poly);
  PolyId build(std::vector<Term> terms, int64_t c0);
  MonoId intern_mono(std::vector<AtomId> atoms);
  MonoId mul_mono(MonoId a, MonoId b);
  std::optional<MonoId> div_mono(MonoId a, MonoId b);
  AtomId intern_atom(Atom atom);
  PolyId join_digits(PolyId p);
  PolyId choose(AtomKind kind, PolyId a, PolyId b);

  DivMod long_division(PolyId e, PolyId d);
  bool close(DivMod& result, PolyId d);
  DivMod divide(PolyId e, PolyId d);
  std::optional<DivMod> divide_by_factor(const DivMod& partial, PolyId d);
  std::optional<DivMod> divide_one_atom(PolyId r, PolyId d);
  DivMod divide_residual(PolyId r, PolyId d);
  std::vector<PolyId> factor_candidates(PolyId r, PolyId d);
  bool leads_negative(PolyId p) const;
  int compare_monos(MonoId a, MonoId b) const;
  int compare_grlex(MonoId a, MonoId b) const;
  size_t leading_term(const Poly& p) const;

  bool prove_ge0(PolyId p);
  bool symbols_ge0(PolyId p) const;
  PolyId atom_bound(AtomId id, bool upper);
  PolyId compute_atom_bound(const Atom& atom, bool upper);
  PolyId replace_atom(AtomId id, const AtomMap& map, AtomMap& done, bool through_axes);
  PolyId rewrite(PolyId p, const AtomMap& map, AtomMap& done, bool through_axes);
  int64_t evaluate_atom(AtomId id, const PointValues& at) const;

  StableList<Poly> polys_;
  StableList<Atom> atoms_;
  StableList<std::vector<AtomId>> monos_;
  StableList<std::string> names_;
  std::unordered_multimap<uint64_t, uint32_t> poly_index_, atom_index_, mono_index_;
  std::unordered_map<uint64_t, DivMod> divmod_memo_;
  std::unordered_map<PolyId, bool> ge0_memo_;
  std::unordered_map<uint64_t, PolyId> bound_memo_;
  std::vector<PolyId> factors_;  // non-monomial divisors met: candidates for splitting others
  uint32_t next_slot_ = 1u << 16;
  int depth_ = 0;
  bool capped_ = false;
};

}  // namespace tn
