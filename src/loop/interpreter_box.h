#pragma once
// Boxes of a kernel's domain, and what is decided in all of one: masks, comparisons of indices, and
// the div, mod, min and max in polynomials. A domain that is cut where these change falls into
// boxes in which padding, joining and updating are plain copies.
#include <optional>
#include <span>
#include <vector>

#include "loop/analysis.h"

namespace tn::loop::machine {

inline int64_t floor_quotient(int64_t a, int64_t b) {
  int64_t q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0));
}

/// By axis: the first point, and how many.
struct Box {
  std::vector<int64_t> first, extents;
};
Box whole_domain(const Kernel& kernel, std::span<const Binding> symbols);

/// A polynomial with symbols bound: base + strides over axes + coefficients of computed i64 slots.
struct Linear {
  int64_t base = 0;
  std::vector<int64_t> strides;
  std::vector<std::pair<int64_t, int32_t>> terms;

  bool is_constant() const;
};
Linear halved(Linear value);  // one of even numbers

class BoxFacts {
 public:
  BoxFacts(const Kernel& kernel, std::span<const Binding> symbols, Box box);

  const std::vector<int64_t>& extents() const { return box_.extents; }
  /// An axis or a symbol, by the points of the box: its first one is 0.
  Linear leaf(const Atom& atom) const;
  /// `kind` of two functions without terms, where it is one itself in all of the box.
  std::optional<Linear> decided(AtomKind kind, const Linear& a, const Linear& b) const;
  Bounds range(const Linear& value) const;
  /// Whether a bool has one value in all of the box (then which), or a load reads nothing (false).
  std::optional<bool> known(ValueId id) const {
    int8_t fate = fates_[static_cast<size_t>(id)];
    return fate < 0 ? std::nullopt : std::optional(fate > 0);
  }
  /// The operands that count: of a decided selection the one that is chosen.
  template <class F>
  void for_each_wanted(const Value& v, F&& f) const;

  /// Where the box must be cut so that something more is decided.
  struct Cut {
    size_t axis;
    int64_t at;
  };
  std::optional<Cut> cut() const;

 private:
  std::optional<Linear> affine(PolyId poly) const;
  std::optional<Linear> affine(const Atom& atom) const;
  std::optional<Linear> number(ValueId id) const;
  std::optional<Linear> excess(const Value& comparison) const;
  int8_t fate_of(const Value& v) const;
  std::optional<Cut> cut_at_zero(const std::optional<Linear>& value) const;
  std::optional<Cut> cut_in(PolyId poly) const;
  std::optional<Cut> cut_of(const Value& v) const;
  std::optional<Cut> cut_in(PolyId index, MaskId mask) const;
  std::optional<size_t> only_axis(const Linear& value) const;

  const Kernel& kernel_;
  std::span<const Binding> symbols_;
  Box box_;
  std::vector<int8_t> fates_;  // by value: -1 where it varies or is no such value
};

/// Boxes that cover the domain, each with nothing left to decide, or the domain as it is.
std::vector<Box> boxes_of(const Kernel& kernel, std::span<const Binding> symbols);

template <class F>
void BoxFacts::for_each_wanted(const Value& v, F&& f) const {
  std::optional<bool> chosen = v.op == Op::select ? known(v.a) : std::nullopt;
  if (chosen)
    f(*chosen ? v.b : v.c);
  else
    for_each_operand(kernel_, v, f);
}

}  // namespace tn::loop::machine
