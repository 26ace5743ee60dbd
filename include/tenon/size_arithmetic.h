#pragma once
// Arithmetic on sizes: `x.shape()[0] * 2` is a size, which varies with `x` in a traced function.
#include <source_location>

#include "tenon/dim.h"

namespace tn {

/// What stands beside a size, with the place of the call: an integer or another size.
struct SizeTerm {
  Dim size;
  std::source_location place;
  template <class T>
    requires(IsInteger<T> || std::same_as<T, Dim>)
  SizeTerm(T value, std::source_location at = std::source_location::current())
      : size(value), place(at) {}
};
/// The same in front of a size: an integer.
struct SizeNumber {
  Dim size;
  std::source_location place;
  template <IsInteger T>
  SizeNumber(T value, std::source_location at = std::source_location::current())
      : size(value), place(at) {}
};

/// `op` is one of + - * / %. The result may be negative, which is an error of the op that is given
/// it. Quotients are rounded down, as Python's `//` does; a divisor below 1 is an error.
Dim compute(Dim a, char op, const SizeTerm& b);
Dim compute(const SizeNumber& a, char op, Dim b);

// Templates that convert one operand: in the library, the operators of ir/dim.h come first.
// clang-format off
template <std::same_as<Dim> D> D operator+(D a, const SizeTerm& b) { return compute(a, '+', b); }
template <std::same_as<Dim> D> D operator-(D a, const SizeTerm& b) { return compute(a, '-', b); }
template <std::same_as<Dim> D> D operator*(D a, const SizeTerm& b) { return compute(a, '*', b); }
template <std::same_as<Dim> D> D operator/(D a, const SizeTerm& b) { return compute(a, '/', b); }
template <std::same_as<Dim> D> D operator%(D a, const SizeTerm& b) { return compute(a, '%', b); }
template <std::same_as<Dim> D> D operator+(const SizeNumber& a, D b) { return compute(a, '+', b); }
template <std::same_as<Dim> D> D operator-(const SizeNumber& a, D b) { return compute(a, '-', b); }
template <std::same_as<Dim> D> D operator*(const SizeNumber& a, D b) { return compute(a, '*', b); }
template <std::same_as<Dim> D> D operator/(const SizeNumber& a, D b) { return compute(a, '/', b); }
template <std::same_as<Dim> D> D operator%(const SizeNumber& a, D b) { return compute(a, '%', b); }
template <std::same_as<Dim> D> D operator-(D a) { return compute(SizeNumber(0), '-', a); }
template <std::same_as<Dim> D> D& operator+=(D& a, const SizeTerm& b) { return a = a + b; }
template <std::same_as<Dim> D> D& operator-=(D& a, const SizeTerm& b) { return a = a - b; }
template <std::same_as<Dim> D> D& operator*=(D& a, const SizeTerm& b) { return a = a * b; }
template <std::same_as<Dim> D> D& operator/=(D& a, const SizeTerm& b) { return a = a / b; }
template <std::same_as<Dim> D> D& operator%=(D& a, const SizeTerm& b) { return a = a % b; }
// clang-format on

}  // namespace tn
