// Exponentials, logarithms, powers and roots.
#include <cmath>

#include "base/error.h"
#include "ir/number.h"
#include "ir/trace.h"
#include "ops/complex_math.h"
#include "ops/families.h"
#include "ops/op_decls.h"
#include "ops/slopes.h"

namespace tn::ops {

constexpr auto exp_def = Elementwise<>{
    .doc = "e to the power `x`. Overflow gives infinity.",
    .types = inexact,
    .operands = Operands::inexact,
    .scalar = [](S x) { return sc::exp(x); },
    .complex = [](Z z) { return cx::exp(z); },
    .partials = {[](T t, T, T out) { return t * out; }},
    .precision = Precision::full,
    .samples = {{"f32[2,3]"}, {"f32[]", "", -80, 80}},
};
TN_OP(exp);

constexpr auto expm1_def = Elementwise<>{
    .doc = "`exp(x) - 1`, accurate near zero.",
    .types = inexact,
    .operands = Operands::inexact,
    .scalar = [](S x) { return sc::expm1(x); },
    .complex = [](Z z) { return cx::expm1(z); },
    .partials = {[](T t, T, T out) { return t * (out + 1); }},
    .precision = Precision::full,
    .samples = {{"f32[2,3]"}, {"f32[4]", "", -1e-3, 1e-3}},
};
TN_OP(expm1);

constexpr auto exp2_def = Elementwise<>{
    .doc = "2 to the power `x`. Overflow gives infinity.",
    .types = floats,
    .operands = Operands::inexact,
    .scalar = [](S x) { return sc::exp2(x); },
    .partials = {[](T t, T, T out) { return t * out * M_LN2; }},
    .precision = Precision::full,
    .samples = {{"f32[2,3]"}, {"f32[]", "", -14, 14}},
};
TN_OP(exp2);

constexpr auto log_def = Elementwise<>{
    .doc =
        "The natural logarithm. Zero gives minus infinity, negative reals give NaN; "
        "complex results have an imaginary part in [-pi, pi].",
    .types = inexact,
    .operands = Operands::inexact,
    .scalar = [](S x) { return sc::log(x); },
    .complex = [](Z z) { return cx::log(z); },
    .partials = {[](T t, T x) { return t / x; }},
    .precision = Precision::full,
    .samples = {{"f32[2,3]", "", 0.1, 4}, {"f32[]", "", 1, 100}},
};
TN_OP(log);

constexpr auto log1p_def = Elementwise<>{
    .doc = "`log(1 + x)`, accurate near zero. -1 gives minus infinity, smaller reals give NaN.",
    .types = inexact,
    .operands = Operands::inexact,
    .scalar = [](S x) { return sc::log1p(x); },
    .complex = [](Z z) { return cx::log1p(z); },
    .partials = {[](T t, T x) { return t / (x + 1); }},
    .precision = Precision::full,
    .samples = {{"f32[2,3]", "", -0.5, 4}, {"f32[4]", "", -1e-3, 1e-3}},
};
TN_OP(log1p);

constexpr auto log2_def = Elementwise<>{
    .doc = "The logarithm to base 2. Zero gives minus infinity, negative reals give NaN.",
    .types = inexact,
    .operands = Operands::inexact,
    .scalar = [](S x) { return sc::log2(x); },
    .complex = [](Z z) { return cx::log(z, M_LOG2E); },
    .partials = {[](T t, T x) { return t / x * M_LOG2E; }},
    .precision = Precision::full,
    .samples = {{"f32[2,3]", "", 0.1, 4}, {"f32[]", "", 1, 100}},
};
TN_OP(log2);

constexpr auto log10_def = Elementwise<>{
    .doc = "The logarithm to base 10. Zero gives minus infinity, negative reals give NaN.",
    .types = inexact,
    .operands = Operands::inexact,
    .scalar = [](S x) { return sc::log10(x); },
    .complex = [](Z z) { return cx::log(z, M_LOG10E); },
    .partials = {[](T t, T x) { return t / x * M_LOG10E; }},
    .precision = Precision::full,
    .samples = {{"f32[2,3]", "", 0.1, 4}, {"f32[]", "", 1, 100}},
};
TN_OP(log10);

// exp(x) / (exp(x) + exp(y)): 0 where both are minus infinity, 1 where both are plus infinity.
static Tensor share(T x, T y) {
  return tn::sigmoid(tn::where(tn::logical_and(x == y, tn::isinf(x)), x, x - y));
}

constexpr auto logaddexp_def = Elementwise<>{
    .doc = "`log(exp(x1) + exp(x2))` without overflow.",
    .types = floats,
    .operands = Operands::inexact,
    .scalar = [](S a, S b) { return sc::logaddexp(a, b); },
    .partials = {[](T t, T x, T y) { return t * share(x, y); },
                 [](T t, T x, T y) { return t * share(y, x); }},
    .precision = Precision::full,
    .samples = {{"f32[2,3], f32[3]"}, {"f32[2,1], f32[3]", "", -50, 50}},
};
TN_OP(logaddexp);

// By squaring, modulo 2^width as multiplication is. A negative power of an integer is whole only
// for ±1.
static S integer_pow(S base, S exponent) {
  DType type = base.type();
  S one = loop::constant_like(base, 1), zero = loop::constant_like(base, 0);
  bool is_signed = kind_of(type) == Kind::integer;
  int bits = static_cast<int>(size_of(type)) * 8 - (is_signed ? 1 : 0);
  S result = one, square = base, rest = exponent;
  for (int i = 0; i < bits; ++i) {
    result = sc::select((rest & one) == zero, result, result * square);
    if (i + 1 < bits) square = square * square, rest = rest >> one;
  }
  if (!is_signed) return result;
  S minus = loop::constant_like(base, -1);
  S parity = sc::select((exponent & one) == zero, one, base);
  S inverse = sc::select((base == one) | (base == minus), parity, zero);
  return sc::select(exponent < zero, inverse, result);
}

static void refuse_negative_power(const Tensors& in) {
  const Node& power = *in[1].node();
  if (!is_integer(in[0].dtype())) return;
  if (is_given_number(in[1]) && kind_of_number(in[1]) == Kind::integer) fail_unknown_value();
  if (!is_scalar(power)) return;
  const Scalar& value = scalar_value(power);
  if (value.kind == Kind::integer && value.integer < 0)
    fail(Hint{"convert the base to a float: astype(x1, float32)"},
         "pow: an integer has no negative power: {} ({})", value.integer, *type_of(in[0]));
}

// y x^(y-1): 0 for y = 0, also at x = 0. Where the power is a plain number, its value is known
// while recording; the bits are those of the general form.
static Tensor pow_in_base(T t, T x, T y) {
  bool plain = is_scalar(*y.node()) && scalar_value(*y.node()).kind != Kind::complex;
  double power = plain ? scalar_value(*y.node()).real : NAN;
  if (power == 0) return Tensor();
  if (power == 1) return t;
  if (power == 2) return t * x * 2;
  Tensor less = plain && y.dtype() == DType::f64 ? make_scalar(power - 1, y.dtype(), false)
                : plain && y.dtype() == DType::f32
                    ? make_scalar(static_cast<float>(power) - 1.0f, y.dtype(), false)
                    : zeros_as_ones(y) - 1;
  return t * tn::pow(x, less) * y;
}

constexpr auto pow_def = Elementwise<>{
    .doc =
        "`x1` to the power `x2`. `x ** 0` is 1. Integer powers wrap around; a negative power of an "
        "integer is an error for a plain number and 0 in a tensor (but exact for bases 1 and -1). "
        "A negative real to a power that is not whole gives NaN. The derivative in `x1` is 0 for "
        "`x2 = 0`, that in `x2` is 0 for `x1 = 0`.",
    .aliases = {"power"},
    .symbol = "**",
    .types = numeric,
    .scalar = [](S a, S b) { return is_float(a.type()) ? sc::pow(a, b) : integer_pow(a, b); },
    .complex = [](Z a, Z b) { return cx::pow(a, b); },
    .prepare = [](NoAttrs&, Tensors& in) { refuse_negative_power(in); },
    .partials = {[](T t, T x, T y) { return pow_in_base(t, x, y); },
                 [](T t, T x, T, T out) {
                   return t * tn::where(x == 0, 0, out * tn::log(zeros_as_ones(x)));
                 }},
    .precision = Precision::full,
    .samples = {{"f32[2,3], f32[2,3]", "", 0.5, 3},
                {"f32[2,1], f32[3]", "", 1, 3},
                {"f32[4], f32[]", "", 0, 3}},
};
TN_OP(pow);

constexpr auto sqrt_def = Elementwise<>{
    .doc =
        "The square root, correctly rounded. Negative reals give NaN; "
        "complex results lie in the right half plane. The derivative at 0 is infinite.",
    .types = inexact,
    .operands = Operands::inexact,
    .scalar = [](S x) { return sc::sqrt(x); },
    .complex = [](Z z) { return cx::sqrt(z); },
    .partials = {[](T t, T, T out) { return t / (out * 2); }},
    .samples = {{"f32[2,3]", "", 0, 4}, {"f32[]", "", 1, 100}},
};
TN_OP(sqrt);

constexpr auto rsqrt_def = Elementwise<>{
    .doc = "`1 / sqrt(x)`. Zero gives infinity, negative numbers give NaN.",
    .types = floats,
    .operands = Operands::inexact,
    .scalar = [](S x) { return sc::rsqrt(x); },
    .partials = {[](T t, T x, T out) { return t * out / (x * -2); }},
    .precision = Precision::full,
    .samples = {{"f32[2,3]", "", 0.1, 4}, {"f32[]", "", 1, 100}},
};
TN_OP(rsqrt);

constexpr auto cbrt_def = Elementwise<>{
    .doc = "The real cube root, of negative numbers too.",
    .types = floats,
    .operands = Operands::inexact,
    .scalar = [](S x) { return sc::cbrt(x); },
    .partials = {[](T t, T, T out) { return t / (out * out * 3); }},
    .samples = {{"f32[2,3]"}, {"f32[]", "", -100, 100}},
};
TN_OP(cbrt);

constexpr auto hypot_def = Elementwise<>{
    .doc =
        "`sqrt(x1**2 + x2**2)` without overflow on the way. An infinite operand gives infinity. "
        "The derivative at the origin is 0.",
    .types = floats,
    .operands = Operands::inexact,
    .scalar = [](S a, S b) { return sc::hypot(a, b); },
    .partials = {[](T t, T x, T, T out) { return t * (x / zeros_as_ones(out)); },
                 [](T t, T, T y, T out) { return t * (y / zeros_as_ones(out)); }},
    .samples = {{"f32[2,3], f32[3]"}, {"f32[2,1], f32[3]", "", -100, 100}},
};
TN_OP(hypot);

// The derivative of erf.
static Tensor bell(T x) { return tn::exp(-x * x) * M_2_SQRTPI; }

constexpr auto erf_def = Elementwise<>{
    .doc = "The error function.",
    .types = floats,
    .operands = Operands::inexact,
    .scalar = [](S x) { return sc::erf(x); },
    .partials = {[](T t, T x) { return t * bell(x); }},
    .samples = {{"f32[2,3]"}, {"f32[]"}},
};
TN_OP(erf);

constexpr auto erfc_def = Elementwise<>{
    .doc = "The complementary error function `1 - erf(x)`, accurate where it is small.",
    .types = floats,
    .operands = Operands::inexact,
    .scalar = [](S x) { return sc::erfc(x); },
    .partials = {[](T t, T x) { return -t * bell(x); }},
    .samples = {{"f32[2,3]"}, {"f32[4]", "", 1, 6}},
};
TN_OP(erfc);

constexpr auto erfinv_def = Elementwise<>{
    .doc = "The inverse of `erf`. -1 and 1 give infinities, numbers beyond them NaN.",
    .types = floats,
    .operands = Operands::inexact,
    .scalar = [](S x) { return sc::erfinv(x); },
    .partials = {[](T t, T, T out) { return t / bell(out); }},
    .precision = Precision::full,
    .samples = {{"f32[2,3]", "", -0.9, 0.9}, {"f32[]", "", -0.5, 0.5}},
};
TN_OP(erfinv);

}  // namespace tn::ops
