#pragma once
// Tensor sizes: a constant or an expression over named symbols, in 8 bytes.
#include <concepts>
#include <cstdint>
#include <string_view>

namespace tn {

/// Integers, but not bool: `sum(x, true)` is a mistake.
template <class T>
concept IsInteger = std::integral<T> && !std::same_as<T, bool>;

/// A size. raw >= 0 is the constant itself, raw < 0 is ~id of a polynomial in a table shared by
/// the whole process, where equal expressions have equal ids. Constants never touch the table.
/// -1 stands for "what is left" where an op says so (reshape); other negative numbers are errors of
/// the op that is given them.
struct Dim {
  int64_t raw = 0;

  constexpr Dim() = default;
  template <IsInteger T>
  constexpr Dim(T value) : raw(clamped(value)) {
    if (raw < 0) [[unlikely]]
      raw = INT64_MIN + (-1 - (raw < kLeastSymbol ? kLeastSymbol : raw));
  }

  /// The symbol `name` with values in [lo, hi]; its identity is (name, lo, hi).
  static Dim symbol(std::string_view name, int64_t lo = 1, int64_t hi = kLargestSymbol);

  constexpr bool is_const() const { return raw >= 0; }
  constexpr bool is_inferred() const { return raw == kInferred; }
  /// Whether it is a negative number, which is none of a tensor's sizes.
  constexpr bool is_negative() const { return raw < kLeastSymbol; }
  /// The constant. A symbolic size has a value only while a function is traced, and is fixed by
  /// asking for it.
  int64_t value() const {
    if (raw < 0) [[unlikely]]
      return hinted_value(*this);
    return raw;
  }

  // Comparisons are by value. In a traced function they are decided for the sizes of the call, and
  // the trace serves sizes with the same answer. Elsewhere symbols have no values: sizes are equal
  // if they are so for all values, and an order that depends on them is an error.
  template <std::same_as<Dim> T>  // in the library, ir/dim.h excludes it
  friend constexpr bool operator==(T a, Dim b) {
    return a.raw == b.raw || (!(a.is_number() && b.is_number()) && is_equal(a, b));
  }
  template <std::same_as<Dim> T>
  friend constexpr bool operator>=(T a, Dim b) {
    return a.is_const() && b.is_const() ? a.raw >= b.raw : is_at_least(a, b);
  }
  template <std::same_as<Dim> T>
  friend constexpr bool operator<=(T a, Dim b) {
    return b >= a;
  }
  template <std::same_as<Dim> T>
  friend constexpr bool operator<(T a, Dim b) {
    return !(a >= b);
  }
  template <std::same_as<Dim> T>
  friend constexpr bool operator>(T a, Dim b) {
    return !(b >= a);
  }
  // Numbers of any type, also those that no size can have.
  template <IsInteger T>
  friend constexpr bool operator==(Dim a, T n) {
    if (a.is_const()) return !is_below_0(n) && bits(a.raw) == bits(n);
    return a == Dim(n);
  }
  // clang-format off
  template <IsInteger T> friend constexpr bool operator>=(Dim a, T n) { return reaches(a, n); }
  template <IsInteger T> friend constexpr bool operator<(Dim a, T n) { return !reaches(a, n); }
  template <IsInteger T> friend constexpr bool operator<=(Dim a, T n) { return !exceeds(a, n); }
  template <IsInteger T> friend constexpr bool operator>(Dim a, T n) { return exceeds(a, n); }
  template <IsInteger T> friend constexpr bool operator<=(T n, Dim a) { return reaches(a, n); }
  template <IsInteger T> friend constexpr bool operator>(T n, Dim a) { return !reaches(a, n); }
  template <IsInteger T> friend constexpr bool operator>=(T n, Dim a) { return !exceeds(a, n); }
  template <IsInteger T> friend constexpr bool operator<(T n, Dim a) { return exceeds(a, n); }
  // clang-format on

  // For the library, which compares expressions.
  /// Whether it is this constant.
  constexpr bool is(int64_t constant) const { return raw == constant && raw >= 0; }
  /// Whether two sizes are the same expression.
  friend constexpr bool identical(Dim a, Dim b) { return a.raw == b.raw; }

  static constexpr int64_t kLargestSymbol = int64_t{1} << 40;
  static constexpr int64_t kInferred = INT64_MIN;
  static constexpr int64_t kLeastSymbol = INT64_MIN / 2;  // below: INT64_MIN + k is -1 - k
  [[noreturn]] static void fail_negative(int64_t value);

 private:
  constexpr bool is_number() const { return is_const() || is_negative(); }
  template <class T>
  static constexpr int64_t clamped(T n) {
    if constexpr (std::unsigned_integral<T> && sizeof(T) == 8)
      return n > INT64_MAX ? INT64_MAX : static_cast<int64_t>(n);
    else
      return static_cast<int64_t>(n);
  }
  static constexpr uint64_t bits(auto n) { return static_cast<uint64_t>(n); }
  template <class T>
  static constexpr bool is_below_0(T n) {
    if constexpr (std::signed_integral<T>) return n < 0;
    return false;
  }
  /// a >= n
  template <class T>
  static constexpr bool reaches(Dim a, T n) {
    if (a.is_const()) return is_below_0(n) || bits(a.raw) >= bits(n);
    return is_at_least(a, clamped(n));
  }
  /// a > n
  template <class T>
  static constexpr bool exceeds(Dim a, T n) {
    if (a.is_const()) return is_below_0(n) || bits(a.raw) > bits(n);
    return !is_at_most(a, clamped(n));
  }
  static int64_t hinted_value(Dim dim);
  static bool is_equal(Dim a, Dim b);
  static bool is_at_least(Dim a, Dim b);
  static bool is_at_least(Dim a, int64_t n);
  static bool is_at_most(Dim a, int64_t n);
};
static_assert(sizeof(Dim) == 8);

/// A distance in elements, which may be negative: a place, a width, a shift. A constant, or an
/// expression over the symbols of sizes.
struct Offset {
  int64_t raw = 0;  // below kLeast: the raw of a symbolic size, counted up from INT64_MIN

  constexpr Offset() = default;
  template <IsInteger T>
  constexpr Offset(T value) : raw(static_cast<int64_t>(value)) {
    if (raw < kLeast) raw = kLeast;
  }
  constexpr Offset(Dim d)
      : raw(d.is_const()      ? d.raw
            : d.is_negative() ? -1 - (d.raw - INT64_MIN)
                              : INT64_MIN - d.raw) {}

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

  /// Whether it is the same expression.
  friend constexpr bool operator==(Offset, Offset) = default;
  friend constexpr bool identical(Offset a, Offset b) { return a == b; }

  static constexpr int64_t kLeast = INT64_MIN + (int64_t{1} << 33);
};

}  // namespace tn
