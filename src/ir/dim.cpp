#include "ir/dim.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <utility>

#include "base/at_fork.h"
#include "base/error.h"
#include "ir/named_symbols.h"
#include "ir/offset.h"
#include "ir/poly.h"

namespace tn {
namespace {

constexpr uint32_t kMaxSize = 1000;

struct DimTable {
  std::shared_mutex mutex;
  PolyTable polys;
  int generation = fork_generation();

  /// The mutex knows its writer by the number of the thread. A child's thread has another one, and
  /// cannot release it: there it is made anew.
  void release_after_fork() {
    if (std::exchange(generation, fork_generation()) == fork_generation())
      mutex.unlock();
    else
      new (&mutex) std::shared_mutex;
  }
};

// Never destroyed: sizes in other static objects may outlive any order of destruction.
DimTable& dim_table() {
  static DimTable& table = *[] {
    auto* made = new DimTable;
    guard_at_fork({3, made, [](void* table) { static_cast<DimTable*>(table)->mutex.lock(); },
                   [](void* table) { static_cast<DimTable*>(table)->release_after_fork(); }});
    return made;
  }();
  return table;
}

PolyId id_of(Dim d) {
  if (d.is_inferred()) fail("size: -1 has no value yet; it is allowed only where an op says so");
  if (d.is_negative()) Dim::fail_negative(Offset(d).raw);
  return static_cast<PolyId>(~d.raw);
}

PolyId poly_of(PolyTable& t, Dim d) { return d.is_const() ? t.constant(d.raw) : id_of(d); }

Dim dim_of(const PolyTable& t, PolyId p) {
  if (t.is_constant(p)) {
    if (t.constant_of(p) < 0) Dim::fail_negative(t.constant_of(p));
    return t.constant_of(p);
  }
  // Nested divisions can double with every step; what is too long to read is not proved.
  if (t.size(p) > kMaxSize) fail("size: an expression has more than {} parts", kMaxSize);
  Dim d;
  d.raw = ~static_cast<int64_t>(p);
  return d;
}

PolyId poly_of(PolyTable& t, Offset a) {
  return a.is_const() ? t.constant(a.raw) : poly_of(t, a.size());
}

Offset offset_of(const PolyTable& t, PolyId p) {
  return t.is_constant(p) ? Offset(t.constant_of(p)) : Offset(dim_of(t, p));
}

template <class F>
auto locked(F f) {
  DimTable& table = dim_table();
  std::unique_lock lock(table.mutex);
  return f(table.polys);
}

template <class F>
auto reading(F f) {
  DimTable& table = dim_table();
  std::shared_lock lock(table.mutex);
  return f(const_cast<const PolyTable&>(table.polys));
}

void collect_symbols(const PolyTable& t, PolyId p, std::vector<AtomId>& found) {
  for (const Term& term : t[p].terms) {
    for (AtomId id : t.atoms_of(term.mono)) {
      const Atom& atom = t.atom(id);
      if (atom.kind == AtomKind::symbol) {
        if (std::find(found.begin(), found.end(), id) == found.end()) found.push_back(id);
      } else {
        collect_symbols(t, atom.a, found);
        collect_symbols(t, atom.b, found);
      }
    }
  }
}

bool is_name(std::string_view name) {
  auto letter = [](char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; };
  auto inner = [&](char c) { return letter(c) || c == '_' || (c >= '0' && c <= '9'); };
  if (name.empty() || name == "min" || name == "max") return false;
  if (!letter(name[0]) && name[0] != '_') return false;
  return std::all_of(name.begin(), name.end(), inner);
}

}  // namespace

void Dim::fail_negative(int64_t value) { fail("size: a size cannot be negative: {}", value); }

Dim Dim::symbol(std::string_view name, int64_t lo, int64_t hi) {
  if (!is_name(name)) fail("size: not a valid name: `{}`", name);
  if (lo < 0 || hi < lo || hi > kLargestSymbol)
    fail("size: the range of {} must be within 0..2^40: {}..{}", name, lo, hi);
  return locked([&](PolyTable& t) { return dim_of(t, t.symbol(name, lo, hi)); });
}

Dim symbolic_add(Dim a, Dim b) {
  return locked([&](PolyTable& t) { return dim_of(t, t.add(poly_of(t, a), poly_of(t, b))); });
}
Dim symbolic_sub(Dim a, Dim b) {
  if (a.is_const() && b.is_const()) fail("size: a size cannot be negative: {} - {}", a.raw, b.raw);
  return locked([&](PolyTable& t) { return dim_of(t, t.sub(poly_of(t, a), poly_of(t, b))); });
}
Dim symbolic_mul(Dim a, Dim b) {
  return locked([&](PolyTable& t) { return dim_of(t, t.mul(poly_of(t, a), poly_of(t, b))); });
}
Dim symbolic_div(Dim a, Dim b) {
  if (b.is(0)) fail("size: division of {} by 0", a);
  return locked([&](PolyTable& t) { return dim_of(t, t.div(poly_of(t, a), poly_of(t, b))); });
}
Dim symbolic_mod(Dim a, Dim b) {
  if (b.is(0)) fail("size: division of {} by 0", a);
  return locked([&](PolyTable& t) { return dim_of(t, t.mod(poly_of(t, a), poly_of(t, b))); });
}
Dim symbolic_min(Dim a, Dim b) {
  return locked([&](PolyTable& t) { return dim_of(t, t.min(poly_of(t, a), poly_of(t, b))); });
}
Dim symbolic_max(Dim a, Dim b) {
  return locked([&](PolyTable& t) { return dim_of(t, t.max(poly_of(t, a), poly_of(t, b))); });
}

Offset symbolic_add(Offset a, Offset b) {
  return locked([&](PolyTable& t) { return offset_of(t, t.add(poly_of(t, a), poly_of(t, b))); });
}
Offset symbolic_sub(Offset a, Offset b) {
  return locked([&](PolyTable& t) { return offset_of(t, t.sub(poly_of(t, a), poly_of(t, b))); });
}

Offset times(Offset a, Offset b) {
  return locked([&](PolyTable& t) { return offset_of(t, t.mul(poly_of(t, a), poly_of(t, b))); });
}
Offset floor_quotient(Offset a, Offset b) {
  return locked([&](PolyTable& t) { return offset_of(t, t.div(poly_of(t, a), poly_of(t, b))); });
}
Offset floor_remainder(Offset a, Offset b) {
  return locked([&](PolyTable& t) { return offset_of(t, t.mod(poly_of(t, a), poly_of(t, b))); });
}

Tri symbolic_equal(Dim a, Dim b) {
  return locked([&](PolyTable& t) {
    PolyId difference = t.sub(poly_of(t, a), poly_of(t, b));
    if (t.is_constant(difference)) return t.constant_of(difference) == 0 ? Tri::yes : Tri::no;
    bool larger = t.ge0(t.add_constant(difference, -1));
    bool smaller = t.ge0(t.add_constant(t.scale(difference, -1), -1));
    return larger || smaller ? Tri::no : Tri::unknown;
  });
}

Tri symbolic_at_least(Dim a, Dim b) {
  return locked([&](PolyTable& t) {
    PolyId difference = t.sub(poly_of(t, a), poly_of(t, b));
    if (t.ge0(difference)) return Tri::yes;
    return t.ge0(t.add_constant(t.scale(difference, -1), -1)) ? Tri::no : Tri::unknown;
  });
}

bool divides(int64_t k, Dim a) {
  if (k == 0) return a.is(0);
  if (a.is_const()) return a.raw % k == 0;
  return locked([&](PolyTable& t) { return t.mod(poly_of(t, a), t.constant(std::abs(k))) == 0; });
}

std::optional<Dim> exact_div(Dim a, Dim b) {
  if (b.is(0)) return std::nullopt;
  if (a.is_const() && b.is_const())
    return a.raw % b.raw == 0 ? std::optional<Dim>(a.raw / b.raw) : std::nullopt;
  return locked([&](PolyTable& t) -> std::optional<Dim> {
    auto result = t.exact_div(poly_of(t, a), poly_of(t, b));
    if (!result) return std::nullopt;
    return dim_of(t, *result);
  });
}

Bounds bounds(Dim a) {
  if (a.is_const()) return {a.raw, a.raw};
  return reading([&](const PolyTable& t) { return t.range(id_of(a)); });
}

int64_t evaluate(Dim a, std::span<const Binding> bindings) {
  if (a.is_const()) return a.raw;
  return reading([&](const PolyTable& t) {
    std::vector<SymbolValue> symbols;
    for (const Binding& b : bindings) {
      auto id = b.symbol.is_const() ? std::nullopt : t.as_atom(id_of(b.symbol));
      if (!id || t.atom(*id).kind != AtomKind::symbol) continue;
      symbols.push_back({t.name_of(t.atom(*id)), t.atom(*id).range, b.value});
    }
    PointValues at{.axes = {}, .values = {}, .symbols = symbols};
    return t.evaluate(id_of(a), at);
  });
}

static PolyId replaced(PolyTable& t, PolyId p, std::span<const Replacement> replacements) {
  PolyTable::AtomMap map;
  for (const Replacement& r : replacements)
    if (auto id = t.as_atom(poly_of(t, r.symbol))) map[*id] = poly_of(t, r.value);
  return t.substitute(p, map);
}

Dim substitute(Dim a, std::span<const Replacement> replacements) {
  if (a.is_const()) return a;
  return locked([&](PolyTable& t) { return dim_of(t, replaced(t, poly_of(t, a), replacements)); });
}

Offset substitute(Offset a, std::span<const Replacement> replacements) {
  if (a.is_const()) return a;
  return locked(
      [&](PolyTable& t) { return offset_of(t, replaced(t, poly_of(t, a), replacements)); });
}

std::vector<Dim> symbols_of(Dim a) {
  if (a.is_const()) return {};
  return locked([&](PolyTable& t) {
    std::vector<AtomId> found;
    collect_symbols(t, poly_of(t, a), found);
    auto before = [&](AtomId x, AtomId y) { return t.compare_atoms(x, y) < 0; };
    std::sort(found.begin(), found.end(), before);
    std::vector<Dim> result;
    for (AtomId id : found) result.push_back(dim_of(t, t.atom_poly(id)));
    return result;
  });
}

std::string symbol_name(Dim a) {
  if (a.is_const() || a.is_negative()) return "";
  return reading([&](const PolyTable& t) -> std::string {
    auto id = t.as_atom(id_of(a));
    if (!id || t.atom(*id).kind != AtomKind::symbol) return "";
    return std::string(t.name_of(t.atom(*id)));
  });
}

std::string to_text(Dim a) {
  if (a.is_const()) return format("{}", a.raw);
  if (a.is_negative()) return format("{}", Offset(a).raw);
  return reading([&](const PolyTable& t) { return t.text(id_of(a), {.compact = true}); });
}

std::string to_text(Offset a) { return a.is_const() ? format("{}", a.raw) : to_text(a.size()); }

Dim parse_dim(std::string_view text, std::span<const Dim> declared) {
  std::vector<std::string> names;
  for (Dim d : declared) names.push_back(symbol_name(d));
  return locked([&](PolyTable& t) {
    auto resolve = [&](std::string_view name) {
      if (!is_name(name)) fail("size: not a valid name: `{}`", name);
      for (size_t i = 0; i < names.size(); ++i)
        if (names[i] == name) return poly_of(t, declared[i]);
      if (const Dim* symbol = NamedSymbols::find(name)) return poly_of(t, *symbol);
      return t.symbol(name, 1, Dim::kLargestSymbol);
    };
    return dim_of(t, t.parse(text, resolve));
  });
}

PolyId PolyTable::from_dim(Dim dim) {
  if (dim.is_const()) return constant(dim.raw);
  return reading([&](const PolyTable& t) { return copy_from(t, id_of(dim)); });
}

std::optional<Dim> PolyTable::to_dim(PolyId p) const {
  if (is_constant(p))
    return constant_of(p) >= 0 ? std::optional<Dim>(constant_of(p)) : std::nullopt;
  if (!has_only_symbols(p)) return std::nullopt;
  return locked([&](PolyTable& t) { return dim_of(t, t.copy_from(*this, p)); });
}

}  // namespace tn
