#pragma once
// Numbers: tensors of rank 0 that adopt the type of their partner, as Python's numbers do.
#include <cmath>

#include "ir/attrs.h"
#include "ir/node.h"

namespace tn {

/// Simplification may depend on a number being 0, -0, 1, -1, 2 or 0.5, and on no other value: those
/// have a class each, all others have 0.
inline uint64_t number_class(double v) {
  if (v == 0) return std::signbit(v) ? 1 : 2;
  return v == 1 ? 3 : v == -1 ? 4 : v == 2 ? 5 : v == 0.5 ? 6 : 0;
}

/// A known one is a scalar leaf. One that is given when a traced function runs is an i64 or f64,
/// and what Python's operators make of it is again a number: their arithmetic. Of comparisons it is
/// a b1.
inline bool is_number(const Tensor& t) { return t.defined() && t.node()->weak; }
/// Whether it is given at run time.
inline bool is_given_number(const Tensor& t) { return is_number(t) && !is_scalar(*t.node()); }
Kind kind_of_number(const Tensor& number);

/// Of the op that a symbolic size is, as a number.
struct SizeAttrs {
  Dim size;
  static constexpr void fields(auto& a, auto&& f) { f("size", a.size, required); }
};

/// A symbolic size as a tensor of rank 0, or as a number.
Tensor size_as(Dim size, DType type, bool number);

/// The type that holds every number of this kind, among those given at run time.
DType wide_dtype(Kind kind);
/// `x`, of rank 0 and a wide type, as a number.
Tensor as_number(Tensor x);

/// The number as a value of `type`, which is no number any more.
Tensor number_as(const Tensor& number, DType type);
/// The same with the type it has alone.
Tensor settled(const Tensor& number);
/// Fails unless `type` holds the number, where wrapping would surprise.
void check_fits(std::string_view op, const Tensor& number, DType type);

/// An operator of Python on numbers that are not all known. Fails, as for any value that is not
/// known, where the op does not do the same as Python.
Tensor number_op(const OpDef& op, Tensors in);

}  // namespace tn
