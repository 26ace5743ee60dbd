#include "ir/sizes.h"

#include <algorithm>

#include "base/error.h"

namespace tn {

static thread_local SizeHints* innermost = nullptr;

SizeHints::SizeHints(std::vector<Binding> hints) : values(std::move(hints)), outer_(innermost) {
  innermost = this;
}

SizeHints::~SizeHints() { innermost = outer_; }

SizeHints* SizeHints::current() { return innermost; }

std::string to_text(const SizeGuard& g) {
  bool equal = g.kind == SizeGuard::Kind::equal;
  return format("{} {} {}", g.a, equal ? (g.holds ? "==" : "!=") : (g.holds ? ">=" : "<"), g.b);
}

bool holds(const SizeGuard& g, std::span<const Binding> sizes) {
  int64_t a = evaluate(g.a, sizes), b = evaluate(g.b, sizes);
  return (g.kind == SizeGuard::Kind::equal ? a == b : a >= b) == g.holds;
}

static bool decide(SizeGuard::Kind kind, Tri known, Dim a, Dim b) {
  if (known != Tri::unknown || !innermost) return known == Tri::yes;
  SizeGuard guard{kind, a, b, true, current_loc};
  guard.holds = holds(guard, innermost->values);
  auto same = [&](const SizeGuard& g) {
    return g.kind == kind && identical(g.a, a) && identical(g.b, b);
  };
  if (!std::ranges::any_of(innermost->guards, same)) innermost->guards.push_back(guard);
  return guard.holds;
}

bool decide_equal(Dim a, Dim b) { return decide(SizeGuard::Kind::equal, equal(a, b), a, b); }

bool decide_equal(const Shape& a, const Shape& b) {
  auto same = [](Dim x, Dim y) { return decide_equal(x, y); };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

bool decide_at_least(Dim a, Dim b) {
  return decide(SizeGuard::Kind::at_least, at_least(a, b), a, b);
}

void ask_again(std::span<const SizeGuard> guards) {
  for (const SizeGuard& g : guards)
    g.kind == SizeGuard::Kind::equal ? decide_equal(g.a, g.b) : decide_at_least(g.a, g.b);
}

/// Constants that are taken away go to the other side: s0-5 >= 0 is s0 >= 5.
static void balance(Offset& a, Offset& b) {
  for (Offset* side : {&a, &b}) {
    std::vector<Replacement> zeros;
    if (!side->is_const())
      for (Dim symbol : symbols_of(side->size())) zeros.push_back({symbol, Dim(0)});
    Offset constant = substitute(*side, zeros);
    if (constant.is_const() && constant.raw < 0) a = a - constant, b = b - constant;
  }
}

bool decide_at_least(Offset a, Offset b) {
  if (a.is_const() && b.is_const()) return a.raw >= b.raw;
  balance(a, b);
  return decide_at_least(a.size(), b.size());
}

bool decide_divides(Dim k, Dim a) { return decide_equal(mod(a, k), 0); }

Dim decide_min(Dim a, Dim b) { return decide_at_least(b, a) ? a : b; }
Dim decide_max(Dim a, Dim b) { return decide_at_least(a, b) ? a : b; }

// Comparisons of programs -------------------------------------------------------------------------

/// Outside of traces what depends on the symbols has no answer: unknown counted as no, a < b and
/// b < a would both hold.
static bool decide_order(Offset a, Offset b) {
  if (a.is_const() && b.is_const()) return a.raw >= b.raw;
  balance(a, b);
  if (!innermost && at_least(a.size(), b.size()) == Tri::unknown)
    fail(
        Hint{"compare sizes of tensors inside a compiled function, where they have values, or give "
             "the symbol a range: Dim::symbol(\"n\", 1, 8)"},
        "size: whether {} >= {} depends on the values of symbols", a, b);
  return decide_at_least(a.size(), b.size());
}

bool Dim::is_equal(Dim a, Dim b) {
  if (!a.is_negative() && !b.is_negative()) return decide_equal(a, b);
  return decide_equal((Offset(a) - Offset(b)).size(), 0);  // a symbolic one and a negative number
}
bool Dim::is_at_least(Dim a, Dim b) { return decide_order(a, b); }

/// Of a very negative number the difference would overflow.
static Offset bounded(Dim a, int64_t n) {
  return a.is_negative() ? n : std::max(n, -Dim::kLargestSymbol);
}
bool Dim::is_at_least(Dim a, int64_t n) { return decide_order(a, bounded(a, n)); }
bool Dim::is_at_most(Dim a, int64_t n) { return decide_order(bounded(a, n), a); }

int64_t Dim::hinted_value(Dim dim) {
  if (dim.is_negative()) fail_negative(Offset(dim).raw);
  SizeHints* sizes = innermost;
  invariant(sizes != nullptr, "the size {} is symbolic where a constant is needed", dim);
  int64_t value = evaluate(dim, sizes->values);
  decide_equal(dim, value);
  return value;
}

/// The guard as "a symbol is this", where it says so: 2*s0 == s1+1 gives s1 = 2*s0-1. Of several
/// symbols the last is replaced.
static std::optional<Replacement> as_replacement(const SizeGuard& g) {
  if (g.kind != SizeGuard::Kind::equal || !g.holds) return {};
  Offset apart = Offset(g.a) - Offset(g.b);
  if (apart.is_const()) return {};
  std::vector<Dim> symbols = symbols_of(apart.size());
  for (auto symbol = symbols.rbegin(); symbol != symbols.rend(); ++symbol) {
    Replacement zero{*symbol, Dim(0)};
    Offset rest = substitute(apart, {&zero, 1});
    Offset value = apart - rest == Offset(*symbol)   ? Offset(0) - rest
                   : rest - apart == Offset(*symbol) ? rest
                                                     : Offset(-1);
    if (!value.is_const() || value.raw >= 0) return Replacement{*symbol, value.size()};
  }
  return {};
}

/// With the replacements put in; false when nothing is left to ask.
static bool put_in(SizeGuard& g, std::span<const Replacement> replacements) {
  Offset a = substitute(Offset(g.a), replacements), b = substitute(Offset(g.b), replacements);
  if ((a - b).is_const()) return false;
  balance(a, b);
  g.a = a.size(), g.b = b.size();
  return true;
}

Solved solve(std::span<const SizeGuard> guards) {
  Solved out;
  for (SizeGuard g : guards) {
    if (!put_in(g, out.replacements)) continue;
    std::optional<Replacement> now = as_replacement(g);
    if (!now) {
      out.rest.push_back(g);
      continue;
    }
    for (Replacement& r : out.replacements) r.value = substitute(r.value, {&*now, 1});
    out.replacements.push_back(*now);
  }
  std::erase_if(out.rest, [&](SizeGuard& g) { return !put_in(g, out.replacements); });
  return out;
}

}  // namespace tn
