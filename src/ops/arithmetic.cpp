// Sums, products, quotients and signs.
#include "ops/complex_math.h"
#include "ops/families.h"
#include "ops/op_decls.h"
#include "ops/slopes.h"

namespace tn::ops {

constexpr auto add_def = Elementwise<>{
    .doc = "The sum `x1 + x2`. Integers wrap around; the sum of booleans is their disjunction.",
    .symbol = "+",
    .types = every_type,
    .scalar = [](S a, S b) { return a.type() == DType::b1 ? a | b : a + b; },
    .complex = [](Z a, Z b) { return Z{a.re + b.re, a.im + b.im}; },
    .partials = {[](T t) { return t; }, [](T t) { return t; }},
    .samples = {{"f32[2,3], f32[2,3]"}, {"f32[2,1], f32[3]"}, {"f32[], f32[4]"}},
};
TN_OP(add);

constexpr auto subtract_def = Elementwise<>{
    .doc = "The difference `x1 - x2`. Integers wrap around; booleans are refused.",
    .aliases = {"sub"},
    .symbol = "-",
    .types = numeric,
    .scalar = [](S a, S b) { return a - b; },
    .complex = [](Z a, Z b) { return Z{a.re - b.re, a.im - b.im}; },
    .partials = {[](T t) { return t; }, [](T t) { return -t; }},
    .samples = {{"f32[2,3], f32[2,3]"}, {"f32[2,1], f32[3]"}, {"f32[4], f32[]"}},
};
TN_OP(subtract);

constexpr auto multiply_def = Elementwise<>{
    .doc =
        "The product `x1 * x2`. Integers wrap around; the product of booleans is their "
        "conjunction.",
    .aliases = {"mul"},
    .symbol = "*",
    .types = every_type,
    .scalar = [](S a, S b) { return a.type() == DType::b1 ? a & b : a * b; },
    .complex = [](Z a, Z b) { return cx::multiply(a, b); },
    .partials = {[](T t, T, T y) { return t * y; }, [](T t, T x) { return t * x; }},
    .samples = {{"f32[2,3], f32[2,3]"}, {"f32[2,1], f32[3]"}, {"f32[], f32[4]"}},
};
TN_OP(multiply);

constexpr auto divide_def = Elementwise<>{
    .doc =
        "The quotient `x1 / x2`. Booleans and integers are divided as float32. "
        "Division by zero gives an infinity, and NaN for `0 / 0`.",
    .aliases = {"true_divide", "div"},
    .symbol = "/",
    .types = inexact,
    .operands = Operands::inexact,
    .scalar = [](S a, S b) { return a / b; },
    .complex = [](Z a, Z b) { return cx::divide(a, b); },
    .partials = {[](T t, T, T y) { return t / y; },
                 [](T t, T, T y, T out) { return -t * out / y; }},
    .samples = {{"f32[2,3], f32[2,3]"}, {"f32[2,1], f32[3]", "", 0.5, 4}, {"f32[4], f32[]"}},
};
TN_OP(divide);

// The remainder has the sign of the divisor; `rem` has that of the dividend.
static S needs_step(S rem, S divisor) {
  S zero = loop::constant_like(rem, 0);
  return (rem != zero) & ((rem < zero) != (divisor < zero));
}

static S floor_divide_float(S a, S b) {
  S rem = sc::rem(a, b);
  S quotient = (a - rem) / b;
  quotient = sc::select(needs_step(rem, b), quotient - 1.0, quotient);
  // The quotient is whole up to rounding: snap it.
  S below = sc::floor(quotient);
  S whole = sc::select(quotient - below > 0.5, below + 1.0, below);
  S exact = a / b;
  S signed_zero = sc::copysign(loop::constant_like(a, 0), exact);
  S result = sc::select(quotient == 0.0, signed_zero, whole);
  return sc::select(b == 0.0, exact, result);
}

static S floor_divide_integer(S a, S b) {
  S quotient = a / b;
  return sc::select(needs_step(sc::rem(a, b), b), quotient - 1.0, quotient);
}

constexpr auto floor_divide_def = Elementwise<>{
    .doc =
        "The quotient rounded towards minus infinity. An integer divided by zero gives 0, "
        "a float an infinity or NaN.",
    .symbol = "//",
    .types = reals,
    .scalar =
        [](S a, S b) {
          if (is_float(a.type())) return floor_divide_float(a, b);
          return kind_of(a.type()) == Kind::natural ? a / b : floor_divide_integer(a, b);
        },
    .gradient = Gradient::zero,
    .samples = {{"f32[2,3], f32[2,3]", "", -9, 9}, {"f32[2,1], f32[3]", "", 1, 20}},
};
TN_OP(floor_divide);

constexpr auto remainder_def = Elementwise<>{
    .doc =
        "What is left of `x1` after floor division by `x2`; it has the sign of `x2`. "
        "The remainder of an integer by zero is 0, of a float NaN.",
    .aliases = {"mod"},
    .symbol = "%",
    .types = reals,
    .scalar =
        [](S a, S b) {
          S rem = sc::rem(a, b);
          if (kind_of(a.type()) == Kind::natural) return rem;
          S result = sc::select(needs_step(rem, b), rem + b, rem);
          if (!is_float(a.type())) return result;
          return sc::select(rem == 0.0, sc::copysign(rem, b), result);
        },
    .partials = {[](T t) { return t; }, [](T t, T x, T y) { return -t * tn::floor_divide(x, y); }},
    .samples = {{"f32[2,3], f32[2,3]", "", -9, 9}, {"f32[2,1], f32[3]", "", 1, 20}},
};
TN_OP(remainder);

constexpr auto fmod_def = Elementwise<>{
    .doc =
        "What is left of `x1` after division by `x2` rounded towards zero; it has the sign of "
        "`x1`. "
        "The remainder of an integer by zero is 0, of a float NaN.",
    .types = reals,
    .scalar = [](S a, S b) { return sc::rem(a, b); },
    .partials = {[](T t) { return t; },
                 [](T t, T x, T y, T out) { return -t * tn::round((x - out) / y); }},
    .samples = {{"f32[2,3], f32[2,3]", "", -9, 9}, {"f32[2,1], f32[3]", "", 1, 20}},
};
TN_OP(fmod);

constexpr auto divmod_def = Composite<>{
    .doc = "Floor division and its remainder: `(floor_divide(x1, x2), remainder(x1, x2))`.",
    .args = {"x1", "x2"},
    .results = {"quotient", "remainder"},
    .body = [](const NoAttrs&, const Tensors& in) -> Tensors {
      return {tn::floor_divide(in[0], in[1]), tn::remainder(in[0], in[1])};
    },
    .samples = {{"f32[2,3], f32[3]", "", -9, 9}, {"f32[4], f32[]", "", 1, 20}},
};
TN_OP(divmod);

constexpr auto negative_def = Elementwise<>{
    .doc = "The number with its sign changed. Unsigned integers wrap around; booleans are refused.",
    .aliases = {"neg"},
    .symbol = "-",
    .types = numeric,
    .scalar = [](S x) { return -x; },
    .complex = [](Z z) { return Z{-z.re, -z.im}; },
    .partials = {[](T t) { return -t; }},
    .samples = {{"f32[2,3]"}, {"f32[]"}},
};
TN_OP(negative);

constexpr auto positive_def = Elementwise<>{
    .doc = "The number itself. Booleans are refused.",
    .symbol = "+",
    .types = numeric,
    .scalar = [](S x) { return x; },
    .complex = [](Z z) { return z; },
    .partials = {[](T t) { return t; }},
    .samples = {{"f32[2,3]"}, {"f32[]"}},
};
TN_OP(positive);

// Of complex numbers: d|z| = Re(conj(z / |z|) dz). It is 0 at 0, as it is for reals.
static Tensors jvp_abs(const NoAttrs&, const Primal& p, const Tensors& t) {
  Tensor direction = tn::sign(p.in[0]);
  if (!is_complex(direction.dtype())) return {t[0] * direction};
  return {tn::real(t[0] * tn::conj(direction))};
}

constexpr auto abs_def = Elementwise<>{
    .doc =
        "The absolute value; of complex numbers the real magnitude. "
        "The smallest signed integer is its own absolute value; booleans are refused. "
        "The derivative at 0 is 0.",
    .aliases = {"absolute"},
    .types = numeric,
    .result = ResultType::real,
    .scalar = [](S x) { return kind_of(x.type()) == Kind::natural ? x : sc::abs(x); },
    .complex = [](Z z) { return Z{cx::abs(z), {}}; },
    .jvp = rule<jvp_abs>,
    .samples = {{"f32[2,3]"}, {"f32[]"}},
};
TN_OP(abs);

static S sign_of(S x) {
  S one = loop::constant_like(x, 1), zero = loop::constant_like(x, 0);
  if (kind_of(x.type()) == Kind::natural) return sc::min(x, one);
  S rest = is_float(x.type()) ? sc::select(x == zero, zero, x) : zero;  // NaN stays
  return sc::select(x > zero, one, sc::select(x < zero, loop::constant_like(x, -1), rest));
}

// A complex sign s turns: ds = i s Im(conj(s) dz) / |z|, and 0 at 0. A real one moves in steps.
static Tensors jvp_sign(const NoAttrs&, const Primal& p, const Tensors& t) {
  Tensor s = p.out[0];
  if (!is_complex(s.dtype())) return {Tensor()};
  Tensor turn = tn::imag(t[0] * tn::conj(s)) / zeros_as_ones(tn::abs(p.in[0]));
  return {s * tn::make_complex(0, turn)};
}

constexpr auto sign_def = Elementwise<>{
    .doc =
        "-1, 0 or 1 by the sign of `x`; `x / abs(x)` for complex numbers. "
        "Zero gives 0, NaN gives NaN; booleans are refused.",
    .types = numeric,
    .scalar = [](S x) { return sign_of(x); },
    .complex = [](Z z) { return cx::sign(z); },
    .jvp = rule<jvp_sign>,
    .samples = {{"f32[2,3]"}, {"f32[]"}},
};
TN_OP(sign);

constexpr auto square_def = Elementwise<>{
    .doc = "`x * x`. Integers wrap around; booleans are refused.",
    .types = numeric,
    .scalar = [](S x) { return x * x; },
    .complex = [](Z z) { return cx::multiply(z, z); },
    .partials = {[](T t, T x) { return t * x * 2; }},
    .samples = {{"f32[2,3]"}, {"f32[]"}},
};
TN_OP(square);

constexpr auto reciprocal_def = Elementwise<>{
    .doc = "`1 / x`, in float32 for booleans and integers. Zero gives an infinity of its sign.",
    .types = inexact,
    .operands = Operands::inexact,
    .scalar = [](S x) { return 1.0 / x; },
    .complex = [](Z z) { return cx::reciprocal(z); },
    .partials = {[](T t, T, T out) { return -t * out * out; }},
    .precision = Precision::full,
    .samples = {{"f32[2,3]", "", 0.5, 4}, {"f32[]", "", -4, -0.5}},
};
TN_OP(reciprocal);

}  // namespace tn::ops
