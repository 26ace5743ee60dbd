#pragma once
// Shapes, axes and the other small values that ops take as attributes. All are plain data.
#include <array>
#include <bit>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <vector>

#include "tenon/dim.h"
#include "tenon/dtype.h"

namespace tn {

inline constexpr int kMaxRank = 16;

[[noreturn]] void fail_too_long(const char* what, int64_t count);

/// A short list of `T` held in place. Longer than kMaxRank is refused.
template <class T>
struct SmallList {
  using value_type = T;
  int32_t count = 0;
  std::array<T, kMaxRank> at{};

  constexpr SmallList() = default;
  SmallList(std::initializer_list<T> items) : SmallList(items.begin(), items.end()) {}
  template <class It>
  SmallList(It first, It last) {
    for (; first != last; ++first) push_back(static_cast<T>(*first));
  }
  static SmallList filled(int count, T value) {
    SmallList list;
    for (int i = 0; i < count; ++i) list.push_back(value);
    return list;
  }

  void push_back(T value) {
    if (count == kMaxRank) fail_too_long("list", count + 1);
    at[static_cast<size_t>(count++)] = value;
  }
  void insert(int place, T value) {
    push_back(value);
    for (int i = count - 1; i > place; --i) std::swap((*this)[i], (*this)[i - 1]);
  }
  void erase(int place) {
    for (int i = place; i + 1 < count; ++i) (*this)[i] = (*this)[i + 1];
    --count;
  }
  int size() const { return count; }
  bool empty() const { return count == 0; }
  T& operator[](int i) { return at[static_cast<size_t>(i)]; }
  const T& operator[](int i) const { return at[static_cast<size_t>(i)]; }
  const T& back() const { return (*this)[count - 1]; }
  T* begin() { return at.data(); }
  T* end() { return at.data() + count; }
  const T* begin() const { return at.data(); }
  const T* end() const { return at.data() + count; }
  friend bool operator==(const SmallList& a, const SmallList& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
};

/// A vector, an array, a span and the like of integers.
template <class R>
concept IsIntegers = requires(const R& r) {
  { *r.begin() } -> std::convertible_to<int64_t>;
  requires IsInteger<std::remove_cvref_t<decltype(*r.begin())>>;
  r.end();
} && !requires(const R& r) { r.at.size(); };

/// The extents of a tensor, outermost first. An integer is one axis.
struct Shape : SmallList<Dim> {
  using SmallList::SmallList;
  Shape(const SmallList<Dim>& list) : SmallList(list) {}
  template <class T>
    requires(IsInteger<T> || std::same_as<T, Dim>)
  Shape(T size) : SmallList({Dim(size)}) {}
  template <IsIntegers R>
  Shape(const R& sizes) : SmallList(sizes.begin(), sizes.end()) {}
  int rank() const { return count; }
  bool is_const() const;
  /// The product of the extents; overflow is an error.
  Dim elements() const;

  /// By value, as sizes are compared.
  template <std::same_as<Shape> S>  // in the library, ir/type.h excludes it
  friend bool operator==(const S& a, const Shape& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  /// For the library: whether all sizes are the same expressions.
  friend bool identical(const Shape& a, const Shape& b) {
    auto same = [](Dim x, Dim y) { return identical(x, y); };
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
  }
};

/// One axis of the operand; negative counts from the end until the op is recorded.
struct Axis {
  int32_t i = 0;
  constexpr Axis() = default;
  template <IsInteger T>
  constexpr Axis(T axis) : i(static_cast<int32_t>(axis)) {}
  friend constexpr bool operator==(Axis, Axis) = default;
};

/// A set of axes; in recorded ops sorted, distinct and non-negative.
struct Axes : SmallList<Axis> {
  using SmallList::SmallList;
  template <IsInteger T>
  Axes(T axis) : SmallList({Axis(axis)}) {}
  template <IsIntegers R>
  Axes(const R& axes) : SmallList(axes.begin(), axes.end()) {}
  bool has(int axis) const;
};

/// An order of axes: result axis k is operand axis perm[k].
struct Perm : SmallList<Axis> {
  using SmallList::SmallList;
};

/// A short list of plain integers: starts, steps, pads, counts.
struct Ints : SmallList<int64_t> {
  using SmallList::SmallList;
  Ints(int64_t value) : SmallList({value}) {}
};

/// A short list of distances, each a constant or symbolic.
struct Offsets : SmallList<Offset> {
  using SmallList::SmallList;
  Offsets(Offset value) : SmallList({value}) {}
  Offsets(int64_t value) : SmallList({Offset(value)}) {}
  Offsets(const Ints& list) : SmallList(list.begin(), list.end()) {}
};

/// Nothing, where a value may be left out: `tn::vmap(f, {0, tn::none})`.
struct None {};
inline constexpr None none;

/// The elements of a list; of anything else a type that has no values.
template <class T>
struct ElementOf {
  struct type {
    type() = delete;
  };
};
template <class T>
  requires requires { typename T::value_type; }
struct ElementOf<T> {
  using type = typename T::value_type;
};

/// A value or nothing (Python's None). Of a list, braces are its elements: `sum(x, {0, 1})`.
template <class T>
struct Maybe {
  bool set = false;
  T value{};
  constexpr Maybe() = default;
  constexpr Maybe(None) {}
  constexpr Maybe(T v) : set(true), value(v) {}
  Maybe(std::initializer_list<typename ElementOf<T>::type> elements) : set(true), value(elements) {}
  template <class U>
    requires(!std::is_same_v<std::remove_cvref_t<U>, Maybe> && std::is_convertible_v<U, T>)
  constexpr Maybe(U&& v) : set(true), value(std::forward<U>(v)) {}
  explicit operator bool() const { return set; }
  const T& operator*() const { return value; }
  const T* operator->() const { return &value; }
  T value_or(T other) const { return set ? value : other; }
};

/// std::complex, without its header.
template <class T>
concept IsComplex = requires(const T& c) {
  { c.real() } -> std::same_as<typename T::value_type>;
  { c.imag() } -> std::same_as<typename T::value_type>;
} && std::is_floating_point_v<typename T::value_type>;

/// A Python-like scalar: a kind and a value, no width. It never widens a tensor's element type.
struct Scalar {
  Kind kind = Kind::integer;  // natural: an integer beyond int64, held in `integer`'s bits
  int64_t integer = 0;        // booleans and integers
  double real = 0, imag = 0;
  Scalar() = default;
  template <std::same_as<bool> T>
  Scalar(T v) : kind(Kind::boolean), integer(v), real(v) {}
  template <IsInteger T>
  Scalar(T v) : integer(static_cast<int64_t>(v)), real(static_cast<double>(v)) {
    if constexpr (std::unsigned_integral<T>)
      if (integer < 0) kind = Kind::natural;
  }
  /// A symbolic one is a number of the trace under way.
  Scalar(Offset v) : Scalar(v.raw) {
    if (!v.is_const()) real = std::numeric_limits<double>::quiet_NaN();
  }
  Scalar(Dim size) : Scalar(Offset(size)) {}
  template <std::floating_point T>
  Scalar(T v) : kind(Kind::floating), real(static_cast<double>(v)) {}
  template <IsComplex C>
  Scalar(const C& v) : kind(Kind::complex), real(v.real()), imag(v.imag()) {}
  bool is_integral() const { return kind < Kind::floating; }
  /// By the bits: with -ffast-math no number is a NaN.
  bool is_symbolic() const {
    return kind == Kind::integer && std::bit_cast<uint64_t>(real) << 1 > 0xffe0'0000'0000'0000;
  }
  /// Of an integer.
  Offset offset() const {
    Offset o;
    o.raw = is_symbolic() || integer >= Offset::kLeast ? integer : Offset::kLeast;
    return o;
  }
};

}  // namespace tn
