#pragma once
// Arithmetic, questions and text of tensor sizes (Dim itself is public: tenon/dim.h).
#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "tenon/dim.h"

namespace tn {

#ifndef TENON_COMPARES_VALUES
// The library asks what it means: whether sizes are `identical` expressions, whether they are
// `equal` for all values, or `decide_equal`, which adds a guard to a trace. The operators of
// programs do the latter.
bool operator==(Dim a, Dim b) = delete;
bool operator>=(Dim a, Dim b) = delete;
bool operator<=(Dim a, Dim b) = delete;
bool operator>(Dim a, Dim b) = delete;
bool operator<(Dim a, Dim b) = delete;
template <class T>
concept IsNumber = IsInteger<T> && sizeof(T) > 0;  // narrower than that of the operators
// clang-format off
template <IsNumber T> bool operator==(Dim a, T n) = delete;
template <IsNumber T> bool operator>=(Dim a, T n) = delete;
template <IsNumber T> bool operator<=(Dim a, T n) = delete;
template <IsNumber T> bool operator>(Dim a, T n) = delete;
template <IsNumber T> bool operator<(Dim a, T n) = delete;
template <IsNumber T> bool operator>=(T n, Dim a) = delete;
template <IsNumber T> bool operator<=(T n, Dim a) = delete;
template <IsNumber T> bool operator>(T n, Dim a) = delete;
template <IsNumber T> bool operator<(T n, Dim a) = delete;
// clang-format on
#endif

/// The answer to a question about sizes: it may hold for some values of the symbols only.
enum class Tri : uint8_t { no, yes, unknown };

/// What a symbol is bound to when a size is evaluated.
struct Binding {
  Dim symbol;
  int64_t value;
};

/// What a symbol is replaced by; this is how a fact (`N = B*S`, `S = 16*S1`) is stated.
struct Replacement {
  Dim symbol;
  Dim value;
};

struct Bounds {
  int64_t lo, hi;
};

// The slow paths, when a symbol takes part or a constant overflows.
Dim symbolic_add(Dim a, Dim b);
Dim symbolic_sub(Dim a, Dim b);
Dim symbolic_mul(Dim a, Dim b);
Dim symbolic_div(Dim a, Dim b);
Dim symbolic_mod(Dim a, Dim b);
Dim symbolic_min(Dim a, Dim b);
Dim symbolic_max(Dim a, Dim b);

inline Dim operator+(Dim a, Dim b) {
  int64_t r;
  if (a.is_const() && b.is_const() && !__builtin_add_overflow(a.raw, b.raw, &r)) return r;
  return symbolic_add(a, b);
}
inline Dim operator-(Dim a, Dim b) {
  if (a.is_const() && b.is_const() && a.raw >= b.raw) return a.raw - b.raw;
  return symbolic_sub(a, b);
}
inline Dim operator*(Dim a, Dim b) {
  int64_t r;
  if (a.is_const() && b.is_const() && !__builtin_mul_overflow(a.raw, b.raw, &r)) return r;
  return symbolic_mul(a, b);
}
/// The quotient rounded down. A symbolic divisor that turns out to be 0 counts as 1.
inline Dim floor_div(Dim a, Dim b) {
  if (a.is_const() && b.is_const() && b.raw > 0) return a.raw / b.raw;
  return symbolic_div(a, b);
}
inline Dim mod(Dim a, Dim b) {
  if (a.is_const() && b.is_const() && b.raw > 0) return a.raw % b.raw;
  return symbolic_mod(a, b);
}
inline Dim ceil_div(Dim a, Dim b) { return floor_div(a + b - 1, b); }
inline Dim min(Dim a, Dim b) {
  if (a.is_const() && b.is_const()) return a.raw < b.raw ? a : b;
  return symbolic_min(a, b);
}
inline Dim max(Dim a, Dim b) {
  if (a.is_const() && b.is_const()) return a.raw < b.raw ? b : a;
  return symbolic_max(a, b);
}
inline Dim& operator+=(Dim& a, Dim b) { return a = a + b; }
inline Dim& operator-=(Dim& a, Dim b) { return a = a - b; }
inline Dim& operator*=(Dim& a, Dim b) { return a = a * b; }

Offset symbolic_add(Offset a, Offset b);
Offset symbolic_sub(Offset a, Offset b);

inline Offset operator+(Offset a, Offset b) {
  int64_t r;
  if (a.is_const() && b.is_const() && !__builtin_add_overflow(a.raw, b.raw, &r)) return r;
  return symbolic_add(a, b);
}
inline Offset operator-(Offset a, Offset b) {
  int64_t r;
  if (a.is_const() && b.is_const() && !__builtin_sub_overflow(a.raw, b.raw, &r)) return r;
  return symbolic_sub(a, b);
}

Tri symbolic_equal(Dim a, Dim b);
Tri symbolic_at_least(Dim a, Dim b);

inline Tri equal(Dim a, Dim b) {
  if (identical(a, b)) return Tri::yes;
  if (a.is_const() && b.is_const()) return Tri::no;
  return symbolic_equal(a, b);
}
/// Whether a >= b.
inline Tri at_least(Dim a, Dim b) {
  if (a.is_const() && b.is_const()) return a.raw >= b.raw ? Tri::yes : Tri::no;
  return symbolic_at_least(a, b);
}
inline bool contains(std::span<const Dim> list, Dim size) {
  for (Dim each : list)
    if (identical(each, size)) return true;
  return false;
}
/// Of a list of bindings, or others of symbols, the one of this symbol; null: there is none.
template <class L>
auto find_symbol(L& list, Dim symbol) {
  for (auto& each : list)
    if (identical(each.symbol, symbol)) return &each;
  return decltype(&*list.begin())(nullptr);
}
/// Whether `k` divides `a` for every value of the symbols.
bool divides(int64_t k, Dim a);
/// a / b when the division is exact as polynomials; nothing when b is 0 or the rest is not 0.
std::optional<Dim> exact_div(Dim a, Dim b);
/// The interval that holds every value of `a`, saturated to int64.
Bounds bounds(Dim a);

/// The value under `bindings`; an unbound symbol is an error that names it.
int64_t evaluate(Dim a, std::span<const Binding> bindings);
Dim substitute(Dim a, std::span<const Replacement> replacements);
Offset substitute(Offset a, std::span<const Replacement> replacements);
/// The symbols of `a`, by name, each once.
std::vector<Dim> symbols_of(Dim a);
/// The name of a symbol; "" when `a` is no symbol.
std::string symbol_name(Dim a);

/// "4", "B", "2*B", "B*S+1", "(B+1)//2", "min(B,4)".
std::string to_text(Dim a);
std::string to_text(Offset a);
/// The inverse of `to_text`. Names not in `declared` become symbols with the default bounds.
Dim parse_dim(std::string_view text, std::span<const Dim> declared = {});

}  // namespace tn

template <>
struct fmt::formatter<tn::Dim> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(tn::Dim d, Context& context) const {
    if (d.is_const()) return fmt::format_to(context.out(), "{}", d.raw);
    return fmt::formatter<std::string_view>::format(tn::to_text(d), context);
  }
};

template <>
struct fmt::formatter<tn::Offset> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(tn::Offset d, Context& context) const {
    return fmt::formatter<std::string_view>::format(tn::to_text(d), context);
  }
};
