#include "ir/sizes.h"

#include <algorithm>

#include "base/error.h"

namespace tn {

static thread_local SizesAtHand* innermost = nullptr;

SizesAtHand::SizesAtHand(std::vector<Binding> at_hand)
    : values(std::move(at_hand)), outer_(innermost) {
  innermost = this;
}

SizesAtHand::~SizesAtHand() { innermost = outer_; }

SizesAtHand* SizesAtHand::current() { return innermost; }

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
  auto same = [&](const SizeGuard& g) { return g.kind == kind && g.a == a && g.b == b; };
  if (!std::ranges::any_of(innermost->guards, same)) innermost->guards.push_back(guard);
  return guard.holds;
}

bool decide_equal(Dim a, Dim b) { return decide(SizeGuard::Kind::equal, equal(a, b), a, b); }

bool decide_at_least(Dim a, Dim b) {
  return decide(SizeGuard::Kind::at_least, at_least(a, b), a, b);
}

void ask_again(std::span<const SizeGuard> guards) {
  for (const SizeGuard& g : guards)
    g.kind == SizeGuard::Kind::equal ? decide_equal(g.a, g.b) : decide_at_least(g.a, g.b);
}

int64_t Dim::value_at_hand(Dim dim) {
  SizesAtHand* sizes = innermost;
  invariant(sizes != nullptr, "the size {} is symbolic where a constant is needed", dim);
  int64_t value = evaluate(dim, sizes->values);
  decide_equal(dim, value);
  return value;
}

namespace {

bool is_symbol(Dim d) { return !d.is_const() && !symbol_name(d).empty(); }

bool contains(Dim whole, Dim symbol) {
  std::vector<Dim> all = symbols_of(whole);
  return std::ranges::find(all, symbol) != all.end();
}

/// The guard as "a symbol is this", if it says so. Constants win, then the symbols that come first.
std::optional<Replacement> as_replacement(const SizeGuard& g) {
  if (g.kind != SizeGuard::Kind::equal || !g.holds) return {};
  bool a = is_symbol(g.a) && (g.b.is_const() || !contains(g.b, g.a));
  bool b = is_symbol(g.b) && (g.a.is_const() || !contains(g.a, g.b));
  if (a && b && symbol_name(g.a) < symbol_name(g.b)) a = false;
  if (a) return Replacement{g.a, g.b};
  if (b) return Replacement{g.b, g.a};
  return {};
}

}  // namespace

Solved solve(std::span<const SizeGuard> guards) {
  Solved out;
  for (SizeGuard g : guards) {
    g.a = substitute(g.a, out.replacements), g.b = substitute(g.b, out.replacements);
    if (g.kind == SizeGuard::Kind::equal && equal(g.a, g.b) == Tri::yes) continue;
    std::optional<Replacement> now = as_replacement(g);
    if (!now) {
      out.rest.push_back(g);
      continue;
    }
    for (Replacement& r : out.replacements) r.value = substitute(r.value, {&*now, 1});
    out.replacements.push_back(*now);
  }
  for (SizeGuard& g : out.rest)
    g.a = substitute(g.a, out.replacements), g.b = substitute(g.b, out.replacements);
  return out;
}

}  // namespace tn
