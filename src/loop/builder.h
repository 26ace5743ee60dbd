#pragma once
// Building kernels: scalar expressions with operators, loads by polynomial index, reductions and
// stores.
#include <span>

#include "loop/kernel.h"

namespace tn::loop {

class Builder;

/// A scalar expression under construction. Operands of one type; a number takes the type of its
/// partner.
struct S {
  Builder* builder = nullptr;
  ValueId id = kNone;

  DType type() const;
};

/// A complex number as two scalars.
struct Z {
  S re, im;
};

class Builder {
 public:
  explicit Builder(std::string name) { kernel_.name = std::move(name); }

  int add_axis(Dim extent, AxisKind kind = AxisKind::par);
  int add_buffer(std::string name, DType type, Dim size, bool written = false);
  int add_argument() { return kernel_.arguments++; }

  /// Axis k as a polynomial, for indices.
  PolyId axis(int k);
  PolyTable& polys() { return kernel_.polys; }
  /// A loaded integer as part of an index. It must lie in [0, extent): clamp it before.
  PolyId value_index(S value, Dim extent);

  S constant(const Scalar& value, DType type);
  S argument(int number, DType type);
  /// The value of an index polynomial, as i64.
  S index(PolyId poly);
  S load(int buffer, PolyId index, MaskId mask = kNone);
  MaskId mask(std::span<const PolyId> at_least_zero);

  S unary(Op op, S a);
  S binary(Op op, S a, S b);
  S ternary(Op op, S a, S b, S c);
  S cast(S a, DType type);
  /// As a cast. What widens a number that was rounded to `type` is not rounded again.
  S rounded(S a, DType type);
  S bitcast(S a, DType type);
  /// Over the given axes, all of kind red. argmax and argmin give the i64 index of the first
  /// extreme.
  S reduce(Monoid monoid, S a, AxisSet over);
  S scan(Monoid monoid, S a, int axis, bool reverse, bool exclusive);

  void store(int buffer, PolyId index, S value, MaskId mask = kNone,
             Combine combine = Combine::set);

  /// Math from here on, of an op on elements of `type`: for narrow floats in its shorter form.
  void compute_for(DType type) { narrow_ = is_float(type) && info(type).compute != type; }

  const Value& value(S s) const { return kernel_.values[static_cast<size_t>(s.id)]; }
  Kernel& kernel() { return kernel_; }
  Kernel finish();  // verified

 private:
  S push(Value value);
  Kernel kernel_;
  bool narrow_ = false;
};

/// `x` as a constant of the type of `like`.
S constant_like(S like, double x);

S operator+(S a, S b);
S operator-(S a, S b);
S operator*(S a, S b);
S operator/(S a, S b);
S operator-(S a);
S operator&(S a, S b);
S operator|(S a, S b);
S operator^(S a, S b);
S operator<<(S a, S b);
S operator>>(S a, S b);
S operator!(S a);
S operator==(S a, S b);
S operator!=(S a, S b);
S operator<(S a, S b);
S operator<=(S a, S b);
inline S operator>(S a, S b) { return b < a; }
inline S operator>=(S a, S b) { return b <= a; }
inline S operator+(S a, double b) { return a + constant_like(a, b); }
inline S operator-(S a, double b) { return a - constant_like(a, b); }
inline S operator*(S a, double b) { return a * constant_like(a, b); }
inline S operator/(S a, double b) { return a / constant_like(a, b); }
inline S operator+(double a, S b) { return constant_like(b, a) + b; }
inline S operator-(double a, S b) { return constant_like(b, a) - b; }
inline S operator*(double a, S b) { return constant_like(b, a) * b; }
inline S operator/(double a, S b) { return constant_like(b, a) / b; }
inline S operator==(S a, double b) { return a == constant_like(a, b); }
inline S operator!=(S a, double b) { return a != constant_like(a, b); }
inline S operator<(S a, double b) { return a < constant_like(a, b); }
inline S operator<=(S a, double b) { return a <= constant_like(a, b); }
inline S operator>(S a, double b) { return constant_like(a, b) < a; }
inline S operator>=(S a, double b) { return constant_like(a, b) <= a; }

/// The scalar functions, by their LoopIR names: `sc::exp(x)`.
namespace sc {
S abs(S), floor(S), ceil(S), round(S), trunc(S), sqrt(S), is_nan(S);
S exp(S), exp2(S), expm1(S), log(S), log2(S), log10(S), log1p(S), rsqrt(S), cbrt(S);
S sin(S), cos(S), tan(S), asin(S), acos(S), atan(S), sinh(S), cosh(S), tanh(S);
S asinh(S), acosh(S), atanh(S), erf(S), erfc(S), erfinv(S), lgamma(S), sigmoid(S);
S gelu(S), gelu_slope(S);
S rem(S, S), max(S, S), min(S, S), pow(S, S), atan2(S, S), hypot(S, S), logaddexp(S, S);
S nextafter(S, S), copysign(S, S);
S select(S condition, S yes, S no), fma(S, S, S);
S cast(S, DType), bitcast(S, DType);
}  // namespace sc

}  // namespace tn::loop
