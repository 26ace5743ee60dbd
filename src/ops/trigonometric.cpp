// Circular and hyperbolic functions and their inverses.
#include <cmath>
#include <numbers>

#include "ops/complex_math.h"
#include "ops/families.h"
#include "ops/op_decls.h"
#include "ops/slopes.h"

namespace tn::ops {

constexpr auto sin_def = Elementwise<>{
    .doc = "The sine of an angle in radians. Infinities give NaN.",
    .types = inexact,
    .operands = Operands::inexact,
    .scalar = [](S x) { return sc::sin(x); },
    .complex = [](Z z) { return cx::sin(z); },
    .partials = {[](T t, T x) { return t * tn::cos(x); }},
    .samples = {{"f32[2,3]", "", -10, 10}, {"f32[]"}},
};
TN_OP(sin);

constexpr auto cos_def = Elementwise<>{
    .doc = "The cosine of an angle in radians. Infinities give NaN.",
    .types = inexact,
    .operands = Operands::inexact,
    .scalar = [](S x) { return sc::cos(x); },
    .complex = [](Z z) { return cx::cos(z); },
    .partials = {[](T t, T x) { return -t * tn::sin(x); }},
    .samples = {{"f32[2,3]", "", -10, 10}, {"f32[]"}},
};
TN_OP(cos);

constexpr auto tan_def = Elementwise<>{
    .doc = "The tangent of an angle in radians. Infinities give NaN.",
    .types = inexact,
    .operands = Operands::inexact,
    .scalar = [](S x) { return sc::tan(x); },
    .complex = [](Z z) { return cx::tan(z); },
    .partials = {[](T t, T, T out) { return t * (out * out + 1); }},
    .precision = Precision::full,
    .samples = {{"f32[2,3]", "", -1.5, 1.5}, {"f32[]"}},
};
TN_OP(tan);

// The slopes of inverse functions of complex numbers are taken from the result, which knows on
// which side of a branch cut it lies.

constexpr auto asin_def = Elementwise<>{
    .doc = "The angle in [-pi/2, pi/2] whose sine is `x`. Reals beyond [-1, 1] give NaN.",
    .aliases = {"arcsin"},
    .types = inexact,
    .operands = Operands::inexact,
    .scalar = [](S x) { return sc::asin(x); },
    .complex = [](Z z) { return cx::asin(z); },
    .partials = {[](T t, T x, T out) {
      return t / (is_complex(x.dtype()) ? tn::cos(out) : tn::sqrt((1 - x) * (1 + x)));
    }},
    .precision = Precision::full,
    .samples = {{"f32[2,3]", "", -1, 1}, {"f32[]", "", -0.5, 0.5}},
};
TN_OP(asin);

constexpr auto acos_def = Elementwise<>{
    .doc = "The angle in [0, pi] whose cosine is `x`. Reals beyond [-1, 1] give NaN.",
    .aliases = {"arccos"},
    .types = inexact,
    .operands = Operands::inexact,
    .scalar = [](S x) { return sc::acos(x); },
    .complex = [](Z z) { return cx::acos(z); },
    .partials = {[](T t, T x, T out) {
      return -t / (is_complex(x.dtype()) ? tn::sin(out) : tn::sqrt((1 - x) * (1 + x)));
    }},
    .precision = Precision::full,
    .samples = {{"f32[2,3]", "", -1, 1}, {"f32[]", "", -0.5, 0.5}},
};
TN_OP(acos);

constexpr auto atan_def = Elementwise<>{
    .doc = "The angle in [-pi/2, pi/2] whose tangent is `x`.",
    .aliases = {"arctan"},
    .types = inexact,
    .operands = Operands::inexact,
    .scalar = [](S x) { return sc::atan(x); },
    .complex = [](Z z) { return cx::atan(z); },
    .partials = {[](T t, T x) { return t / (x * x + 1); }},
    .samples = {{"f32[2,3]", "", -5, 5}, {"f32[]"}},
};
TN_OP(atan);

// a / (a^2 + b^2) without overflow, and 0 at the origin.
static Tensor turn(T a, T b) {
  Tensor radius = zeros_as_ones(tn::hypot(a, b));
  return a / radius / radius;
}

constexpr auto atan2_def = Elementwise<>{
    .doc =
        "The angle in [-pi, pi] of the point with ordinate `x1` and abscissa `x2`. "
        "`atan2(0, 0)` is 0, and so is its derivative; signs of zeros choose the side of the cut.",
    .aliases = {"arctan2"},
    .types = floats,
    .operands = Operands::inexact,
    .scalar = [](S y, S x) { return sc::atan2(y, x); },
    .partials = {[](T t, T y, T x) { return t * turn(x, y); },
                 [](T t, T y, T x) { return -t * turn(y, x); }},
    .samples = {{"f32[2,3], f32[2,3]"}, {"f32[2,1], f32[3]"}},
};
TN_OP(atan2);

// The sine of pi·x, by the distance from the next whole number: 0 at all of them.
static Tensor sin_of_pi(const Tensor& x) {
  if (is_complex(x.dtype())) return tn::sin(x * std::numbers::pi);
  Tensor whole = tn::round(x), sine = tn::sin((x - whole) * std::numbers::pi);
  return tn::where(tn::remainder(whole, 2) == 0, sine, -sine);
}

// Near 0, where the quotient has no derivatives, by its series.
static Tensor sinc_body(const Tensor& given) {
  check_kind("sinc", every_type, given.dtype());
  DType type = to_inexact(given.dtype());
  Tensor x = cast_to(given, info(type).compute), zero = x == 0, square = x * x;
  constexpr double kSquare = std::numbers::pi * std::numbers::pi;
  Tensor series = 1 - square * (kSquare / 6) * (1 - square * (kSquare / 20));
  Tensor safe = tn::where(zero, 1, x);
  return cast_to(tn::where(zero, series, sin_of_pi(safe) / (safe * std::numbers::pi)), type);
}

constexpr auto sinc_def = Composite<>{
    .doc = "`sin(pi * x) / (pi * x)`; 1 at 0.",
    .args = {"x"},
    .body = [](const NoAttrs&, const Tensors& in) -> Tensors { return {sinc_body(in[0])}; },
    .precision = Precision::full,
    .samples = {{"f32[2,3]"}, {"f32[]"}},
};
TN_OP(sinc);

constexpr auto sinh_def = Elementwise<>{
    .doc = "The hyperbolic sine. Overflow gives an infinity.",
    .types = inexact,
    .operands = Operands::inexact,
    .scalar = [](S x) { return sc::sinh(x); },
    .complex = [](Z z) { return cx::sinh(z); },
    .partials = {[](T t, T x) { return t * tn::cosh(x); }},
    .precision = Precision::full,
    .samples = {{"f32[2,3]", "", -4, 4}, {"f32[]"}},
};
TN_OP(sinh);

constexpr auto cosh_def = Elementwise<>{
    .doc = "The hyperbolic cosine. Overflow gives infinity.",
    .types = inexact,
    .operands = Operands::inexact,
    .scalar = [](S x) { return sc::cosh(x); },
    .complex = [](Z z) { return cx::cosh(z); },
    .partials = {[](T t, T x) { return t * tn::sinh(x); }},
    .precision = Precision::full,
    .samples = {{"f32[2,3]", "", -4, 4}, {"f32[]"}},
};
TN_OP(cosh);

constexpr auto tanh_def = Elementwise<>{
    .doc = "The hyperbolic tangent, between -1 and 1.",
    .types = inexact,
    .operands = Operands::inexact,
    .scalar = [](S x) { return sc::tanh(x); },
    .complex = [](Z z) { return cx::tanh(z); },
    .partials = {[](T t, T, T out) { return t * (1 - out * out); }},
    .samples = {{"f32[2,3]", "", -4, 4}, {"f32[]"}},
};
TN_OP(tanh);

constexpr auto asinh_def = Elementwise<>{
    .doc = "The number whose hyperbolic sine is `x`.",
    .aliases = {"arcsinh"},
    .types = inexact,
    .operands = Operands::inexact,
    .scalar = [](S x) { return sc::asinh(x); },
    .complex = [](Z z) { return cx::asinh(z); },
    .partials = {[](T t, T x, T out) {
      return t / (is_complex(x.dtype()) ? tn::cosh(out) : tn::sqrt(x * x + 1));
    }},
    .samples = {{"f32[2,3]", "", -5, 5}, {"f32[]"}},
};
TN_OP(asinh);

constexpr auto acosh_def = Elementwise<>{
    .doc = "The non-negative number whose hyperbolic cosine is `x`. Reals below 1 give NaN.",
    .aliases = {"arccosh"},
    .types = inexact,
    .operands = Operands::inexact,
    .scalar = [](S x) { return sc::acosh(x); },
    .complex = [](Z z) { return cx::acosh(z); },
    .partials = {[](T t, T x, T out) {
      return t / (is_complex(x.dtype()) ? tn::sinh(out) : tn::sqrt(x - 1) * tn::sqrt(x + 1));
    }},
    .precision = Precision::full,
    .samples = {{"f32[2,3]", "", 1, 5}, {"f32[]", "", 1, 2}},
};
TN_OP(acosh);

constexpr auto atanh_def = Elementwise<>{
    .doc =
        "The number whose hyperbolic tangent is `x`. -1 and 1 give infinities, reals beyond them "
        "NaN.",
    .aliases = {"arctanh"},
    .types = inexact,
    .operands = Operands::inexact,
    .scalar = [](S x) { return sc::atanh(x); },
    .complex = [](Z z) { return cx::atanh(z); },
    .partials = {[](T t, T x) { return t / ((1 - x) * (1 + x)); }},
    .precision = Precision::full,
    .samples = {{"f32[2,3]", "", -0.9, 0.9}, {"f32[]", "", -0.5, 0.5}},
};
TN_OP(atanh);

constexpr auto degrees_def = Elementwise<>{
    .doc = "Radians as degrees: `x * 180 / pi`.",
    .aliases = {"rad2deg"},
    .types = floats,
    .operands = Operands::inexact,
    .scalar = [](S x) { return x * (180 / M_PI); },
    .partials = {[](T t) { return tn::degrees(t); }},
    .samples = {{"f32[2,3]"}, {"f32[]"}},
};
TN_OP(degrees);

constexpr auto radians_def = Elementwise<>{
    .doc = "Degrees as radians: `x * pi / 180`.",
    .aliases = {"deg2rad"},
    .types = floats,
    .operands = Operands::inexact,
    .scalar = [](S x) { return x * (M_PI / 180); },
    .partials = {[](T t) { return tn::radians(t); }},
    .samples = {{"f32[2,3]", "", -360, 360}, {"f32[]"}},
};
TN_OP(radians);

}  // namespace tn::ops
