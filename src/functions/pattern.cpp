#include "functions/pattern.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "ir/rewrite.h"

namespace tn {

namespace {

/// A type with every size given by `size(argument, axis)`.
template <class F>
Pattern pattern_of(std::span<const TypeRef> like, F&& size) {
  Pattern out;
  for (size_t i = 0; i < like.size(); ++i) {
    Type type = *like[i];
    for (int k = 0; k < type.rank(); ++k) {
      Dim d = type.shape[k] = size(i, k);
      if (d.is_const()) continue;
      for (Dim symbol : symbols_of(d))
        if (!contains(out.symbols, symbol)) out.symbols.push_back(symbol);
    }
    out.types.push_back(intern(type));
  }
  return out;
}

/// Whether they differ in sizes at most.
bool are_alike(TypeRef a, TypeRef b) {
  return a->dtype == b->dtype && a->device == b->device && a->rank() == b->rank();
}

/// Up to the values of symbols. Nothing is 0 where a symbol stands.
bool fits(TypeRef want, TypeRef have) {
  if (want == have) return true;
  if (want->elements > 0 || !are_alike(want, have)) return false;
  return std::ranges::equal(want->shape, have->shape, [](Dim w, Dim h) {
    return identical(w, h) || (!w.is_const() && h.is_const() && !h.is(0));
  });
}

/// Inside a trace whose sizes are open: they are the surrounding trace's to ask about.
bool has_open_sizes(std::span<const TypeRef> types) {
  auto open = [](TypeRef t) { return !std::ranges::all_of(t->shape, &Dim::is_const); };
  return std::ranges::any_of(types, open);
}

/// With other names than the sizes of a trace around.
Dim numbered_symbol(size_t number) {
  SizeHints* around = SizeHints::current();
  return Dim::symbol(format("s{}", number + (around ? around->values.size() : 0)));
}

}  // namespace

bool Pattern::matches(std::span<const TypeRef> actual, std::vector<Binding>& sizes) const {
  sizes.clear();
  std::span<const TypeRef> wanted = std::span(types).first(actual.size());
  // Other symbols are those of a trace around: they stand for themselves.
  if (symbols.empty()) return std::ranges::equal(wanted, actual);
  if (!std::ranges::equal(wanted, actual, fits)) return false;
  // A symbol is the size of some axis, so that first all are bound, then expressions have values.
  for (bool bind : {true, false}) {
    for (size_t i = 0; i < actual.size(); ++i) {
      for (int k = 0; types[i] != actual[i] && k < types[i]->rank(); ++k) {
        Dim want = types[i]->shape[k], have = actual[i]->shape[k];
        if (identical(want, have)) continue;
        bool plain = contains(symbols, want);
        if (bind && plain && !find_symbol(sizes, want)) sizes.push_back({want, have.value()});
        if (!bind && evaluate(want, sizes) != have.value()) return false;
      }
    }
    if (sizes.size() != symbols.size()) return false;
  }
  return true;
}

Pattern exact_pattern(std::span<const TypeRef> actual) {
  return {{actual.begin(), actual.end()}, {}};
}

Pattern shapeless_pattern(std::span<const TypeRef> actual) {
  if (has_open_sizes(actual)) return exact_pattern(actual);
  size_t next = 0;
  return pattern_of(actual, [&](size_t i, int k) {
    Dim d = actual[i]->shape[k];
    return d.is(0) ? d : numbered_symbol(next++);
  });
}

std::optional<Pattern> generalised(const Pattern& known, std::span<const TypeRef> actual) {
  if (!std::ranges::equal(known.types, actual, are_alike)) return {};
  if (has_open_sizes(actual)) return exact_pattern(actual);
  std::map<std::pair<int64_t, int64_t>, Dim> symbols;  // by what was known and what is now
  return pattern_of(actual, [&](size_t i, int k) {
    Dim before = known.types[i]->shape[k], now = actual[i]->shape[k];
    if (identical(before, now) || now.is(0) || before.is(0)) return now;
    auto [at, is_new] = symbols.try_emplace({before.raw, now.raw});
    if (is_new) at->second = numbered_symbol(symbols.size() - 1);
    return at->second;
  });
}

Pattern substituted(const Pattern& pattern, std::span<const Replacement> replacements) {
  std::vector<TypeRef> types;
  for (TypeRef t : pattern.types) types.push_back(substitute(t, replacements));
  return pattern_of(types, [&](size_t i, int k) { return types[i]->shape[k]; });
}

}  // namespace tn
