// From math ops to the templates that define them.
#include "base/error.h"
#include "loop/macro_value.h"
#include "loop/math.h"
#include "loop/math_narrow.h"

namespace tn::loop {
namespace {

template <class V>
V expand_binary(Op op, V x, V y) {
  namespace math = generic::math;
  switch (op) {
    case Op::pow:
      return math::pow(x, y);
    case Op::atan2:
      return math::atan2(x, y);
    case Op::hypot:
      return math::hypot(x, y);
    case Op::logaddexp:
      return math::logaddexp(x, y);
    case Op::nextafter:
      return math::nextafter(x, y);
    default:
      break;
  }
  throw_internal(format("macros: {} has no definition", facts(op).name));
}

template <class V>
V expand_hyperbolic(Op op, V x, V y) {
  namespace math = generic::math;
  switch (op) {
    case Op::sinh:
      return math::sinh(x);
    case Op::cosh:
      return math::cosh(x);
    case Op::tanh:
      return math::tanh(x);
    case Op::asinh:
      return math::asinh(x);
    case Op::acosh:
      return math::acosh(x);
    case Op::atanh:
      return math::atanh(x);
    case Op::erf:
      return math::erf(x);
    case Op::erfc:
      return math::erfc(x);
    case Op::erfinv:
      return math::erfinv(x);
    case Op::lgamma:
      return math::lgamma(x);
    case Op::sigmoid:
      return math::sigmoid(x);
    case Op::gelu:
      return math::gelu(x);
    case Op::gelu_slope:
      return math::gelu_slope(x);
    default:
      return expand_binary(op, x, y);
  }
}

template <class V>
V expand_op(Op op, V x, V y) {
  namespace math = generic::math;
  switch (op) {
    case Op::exp:
      return math::exp(x);
    case Op::exp2:
      return math::exp2(x);
    case Op::expm1:
      return math::expm1(x);
    case Op::log:
      return math::log(x);
    case Op::log2:
      return math::log2(x);
    case Op::log10:
      return math::log10(x);
    case Op::log1p:
      return math::log1p(x);
    case Op::rsqrt:
      return math::rsqrt(x);
    case Op::cbrt:
      return math::cbrt(x);
    case Op::sin:
      return math::sin(x);
    case Op::cos:
      return math::cos(x);
    case Op::tan:
      return math::tan(x);
    case Op::asin:
      return math::asin(x);
    case Op::acos:
      return math::acos(x);
    case Op::atan:
      return math::atan(x);
    default:
      return expand_hyperbolic(op, x, y);
  }
}

}  // namespace

Macro<float> expand(Op op, Macro<float> x, Macro<float> y) { return expand_op(op, x, y); }
Macro<double> expand(Op op, Macro<double> x, Macro<double> y) { return expand_op(op, x, y); }

Macro<float> expand_narrow(Op op, Macro<float> x) {
  Macro<float> made;
  generic::math::visit_narrow([&](Op of, auto f) {
    if (of == op) made = f(x);
  });
  invariant(made.node != kNone, "macros: no narrow form of {}", facts(op).name);
  return made;
}

}  // namespace tn::loop
