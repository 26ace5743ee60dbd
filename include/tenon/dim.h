#pragma once
// Tensor sizes: a constant or an expression over named symbols, in 8 bytes, equal means identical.
#include <concepts>
#include <cstdint>
#include <string_view>

namespace tn {

/// A size. raw >= 0 is the constant itself, raw < 0 is ~id of a polynomial in a table shared by
/// the whole process, where equal expressions have equal ids. Constants never touch the table.
/// -1 stands for "what is left" where an op says so (reshape); other negative constants are errors.
struct Dim {
  int64_t raw = 0;

  constexpr Dim() = default;
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  constexpr Dim(T value) : raw(static_cast<int64_t>(value)) {
    if (raw < 0) [[unlikely]] {
      if (raw != -1) fail_negative(raw);
      raw = kInferred;
    }
  }

  /// The symbol `name` with values in [lo, hi]; its identity is (name, lo, hi).
  static Dim symbol(std::string_view name, int64_t lo = 1, int64_t hi = kLargestSymbol);

  constexpr bool is_const() const { return raw >= 0; }
  constexpr bool is_inferred() const { return raw == kInferred; }
  /// The constant. A symbolic size has a value only while a function is traced, and is fixed by
  /// asking for it.
  int64_t value() const {
    if (raw < 0) [[unlikely]]
      return hinted_value(*this);
    return raw;
  }

  /// Whether it is the same expression, which two sizes with the same value need not be: compare
  /// values with `x.dim(0) == 4`.
  friend constexpr bool operator==(Dim, Dim) = default;
  /// In a traced function these are decided for the size of the call, and the trace serves sizes
  /// with the same answer.
  friend constexpr bool operator>=(Dim a, Dim b) {
    return a.is_const() && b.is_const() ? a.raw >= b.raw : is_at_least(a, b);
  }
  friend constexpr bool operator<=(Dim a, Dim b) { return b >= a; }
  friend constexpr bool operator<(Dim a, Dim b) { return !(a >= b); }
  friend constexpr bool operator>(Dim a, Dim b) { return !(b >= a); }

  static constexpr int64_t kLargestSymbol = int64_t{1} << 40;
  static constexpr int64_t kInferred = INT64_MIN;
  [[noreturn]] static void fail_negative(int64_t value);
  static int64_t hinted_value(Dim dim);
  static bool is_at_least(Dim a, Dim b);
};
static_assert(sizeof(Dim) == 8);

/// A distance in elements, which may be negative: a place, a width, a shift. A constant, or an
/// expression over the symbols of sizes.
struct Offset {
  int64_t raw = 0;  // below kLeast: the raw of a symbolic size, counted up from INT64_MIN

  constexpr Offset() = default;
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  constexpr Offset(T value) : raw(static_cast<int64_t>(value)) {
    if (raw < kLeast) raw = kLeast;
  }
  constexpr Offset(Dim d) : raw(d.is_const() ? d.raw : d.is_inferred() ? -1 : INT64_MIN - d.raw) {}

  constexpr bool is_const() const { return raw >= kLeast; }
  /// The same as a size; a constant must not be negative.
  constexpr Dim size() const {
    if (is_const()) return Dim(raw);
    Dim d;
    d.raw = INT64_MIN - raw;
    return d;
  }
  /// The constant. A symbolic one is fixed by asking, as with sizes.
  int64_t value() const { return is_const() ? raw : size().value(); }

  friend constexpr bool operator==(Offset, Offset) = default;

  static constexpr int64_t kLeast = INT64_MIN + (int64_t{1} << 33);
};

}  // namespace tn
